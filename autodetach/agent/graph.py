"""Questions to the autograd graph: freed? outdated? which leaves? how many nodes are alive?"""

import gc

import torch

_SAVED = {}

ALIVE, FREED, OUTDATED = "alive", "freed", "outdated"


def saved_names(node):
    kind = type(node)
    names = _SAVED.get(kind)
    if names is None:
        names = [a for a in dir(kind) if a.startswith("_saved_")]
        if hasattr(kind, "saved_tensors"):
            names.append("saved_tensors")
        _SAVED[kind] = names
    return names


def node_state(node):
    """Whether a backward freed the node, or something it saved has been changed since.

    Reading a saved tensor raises the very error that the engine would raise; nothing else tells reliably.
    """
    for name in saved_names(node):
        try:
            getattr(node, name)
        except RuntimeError as error:
            text = str(error)
            if "second time" in text or "already been freed" in text or "have already been freed" in text:
                return FREED
            if "modified by an inplace operation" in text:
                return OUTDATED
        except Exception:
            continue  # a hook of the user's; not ours to judge
    return ALIVE


def outdated_names(node):
    """Which of the node's saved values have been changed since, e.g. ``self``, ``result``."""
    names = []
    for name in saved_names(node):
        try:
            getattr(node, name)
        except RuntimeError as error:
            if "modified by an inplace operation" in str(error):
                names.append(name.removeprefix("_saved_"))
        except Exception:
            continue
    return names


def parents(node):
    return [n for n, _ in node.next_functions if n is not None]


def is_leaf_node(node):
    return hasattr(node, "variable")


def leaves(node, limit=200_000):
    """The tensors that gradients would be accumulated into below ``node``."""
    found, seen, todo = [], {node}, [node]
    while todo and len(seen) < limit:
        for parent in parents(todo.pop()):
            if parent not in seen:
                seen.add(parent)
                if is_leaf_node(parent):
                    found.append(parent.variable)
                else:
                    todo.append(parent)
    return found


def leaves_lazily(node, limit=20_000):
    """The same, one by one, depth first: whoever looks for any one of a kind finds it soon."""
    seen, todo = {node}, [node]
    while todo and len(seen) < limit:
        for parent in parents(todo.pop()):
            if parent not in seen:
                seen.add(parent)
                if is_leaf_node(parent):
                    yield parent.variable
                else:
                    todo.append(parent)


def walk(node, limit=200_000):
    """Every node reachable from ``node``, itself included, leaves left out."""
    seen, todo = {node}, [node]
    while todo:
        current = todo.pop()
        yield current
        for parent in parents(current):
            if parent not in seen and not is_leaf_node(parent) and len(seen) < limit:
                seen.add(parent)
                todo.append(parent)


def dead_part_feeds_a_model(root, is_parameter, limit=50_000):
    """Whether, between ``root`` and the first dead nodes below it, an operation takes a parameter beside what comes
    from there: then what is dead feeds a model, else it enters the loss alone."""
    seen, todo = {}, [(root, False)]
    while todo and len(seen) < limit:
        node, fed = todo.pop()
        if seen.get(node) in (True, fed):
            continue
        seen[node] = fed
        if node is not root and node_state(node) != ALIVE:
            if fed:
                return True
            continue
        below = parents(node)
        fed = fed or any(is_leaf_node(p) and is_parameter(p.variable) for p in below)
        todo += [(p, fed) for p in below if not is_leaf_node(p)]
    return False


def learns_apart_from_the_dead_part(root, is_parameter, limit=50_000):
    """Whether something learns from ``root`` by a way that leads through no dead node."""
    seen, todo = {root}, [root]
    while todo and len(seen) < limit:
        node = todo.pop()
        if node_state(node) != ALIVE:
            continue
        for parent in parents(node):
            if is_leaf_node(parent):
                if is_parameter(parent.variable):
                    return True
            elif parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return False


def live_nodes(before):
    """How many autograd nodes the process keeps alive, garbage not counted; and how many of them have a sequence
    number below ``before``."""
    gc.collect()
    found = alive()
    return len(found), sum(not is_leaf_node(n) and n._sequence_nr() < before for n in found)


def alive():
    """Every autograd node that some tensor of the process leads to."""
    tensors = [o for o in gc.get_objects() if type(o) in (torch.Tensor, torch.nn.Parameter)]
    seen, todo = set(), []
    for tensor in tensors:
        node = tensor.grad_fn
        if node is not None and node not in seen:
            seen.add(node)
            todo.append(node)
    del tensors
    while todo:
        for parent in parents(todo.pop()):
            if parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return seen
