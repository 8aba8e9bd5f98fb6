"""A program without seeds: two runs of it draw the same numbers."""

import pytest

SOURCES = {
    "torch": "import torch; draw = lambda: torch.rand(2).tolist()",
    "a generator of torch": "import torch; draw = lambda: torch.rand(2, generator=torch.Generator()).tolist()",
    "random": "import random; draw = random.random",
    "a generator of random": "import random; draw = lambda: random.Random().random()",
    "numpy": "import numpy; draw = lambda: numpy.random.rand()",
    "a generator of numpy": "import numpy; draw = lambda: numpy.random.default_rng().random()",
    "numpy's old generator": "import numpy; draw = lambda: numpy.random.RandomState().rand()",
    "another bit generator": "import numpy; draw = lambda: numpy.random.Generator(numpy.random.MT19937()).random()",
    "a seed sequence": "import numpy; draw = lambda: numpy.random.SeedSequence().entropy",
    "the order of a set": "draw = lambda: list({'a', 'b', 'c', 'd', 'e'})",
}


@pytest.mark.parametrize("name", SOURCES)
def test_two_runs_draw_the_same(agent, run, name, monkeypatch):
    program = f"{SOURCES[name]}\nprint(draw(), draw())\n"
    first, second = run(program), run(program)
    assert first.status == 0 and first.stdout == second.stdout, first.stderr
    if "generator" in name and "torch" not in name:
        one, two = first.stdout.split()
        assert one != two  # as generators without a seed are


def test_a_programs_own_seeds_win(run):
    program = """
        import random, numpy, torch
        random.seed(3); numpy.random.seed(3); torch.manual_seed(3)
        print(random.random(), numpy.random.rand(), torch.rand(1).item())
        print(random.Random(3).random(), numpy.random.default_rng(3).random(), random.SystemRandom().random() < 1)
        """
    import random

    assert run(program).stdout.split()[0] == str(random.Random(3).random()) == run(program).stdout.split()[3]
