"""Synthetic data of several shapes, as a function, a generator or a DataLoader."""

from __future__ import annotations

from dataclasses import dataclass

_X = {
    "vector": "torch.randn(size, {inputs})",
    "sequence": "torch.randn(size, 5, {inputs})",
    "chunk": "torch.randn(size, 5, {inputs})",
    "signal": "torch.randn(size, {inputs}, 12)",
    "image": "torch.randn(size, {inputs}, 6, 6)",
}
_SUMMARY = {
    "vector": "$x",
    "sequence": "$x.mean(dim=1)",
    "chunk": "$x",
    "signal": "$x.mean(dim=2)",
    "image": "$x.mean(dim=(2, 3))",
}


@dataclass(frozen=True)
class Data:
    """``size`` rows a batch; ``outputs`` values or classes a row."""

    shape: str
    inputs: int
    outputs: int
    size: int
    count: int
    classes: bool

    @property
    def x(self) -> str:
        return _X[self.shape].format(inputs=self.inputs)

    @property
    def y(self) -> str:
        score = f"{_SUMMARY[self.shape]} @ weight"
        return f"({score}).argmax(dim=-1)" if self.classes else f"torch.sin({score})"

    def function(self, style: str) -> str:
        """``make_batches`` as ``style`` says: list, generator or loader."""
        if style == "loader":
            body = [
                "def make_batches(count, size):",
                f"    weight = torch.randn({self.inputs}, {self.outputs})",
                f"    $x = {self.x.replace('size', 'count * size')}",
                f"    $y = {self.y}",
                "    return DataLoader(TensorDataset($x, $y), batch_size=size)",
            ]
        elif style == "generator":
            body = [
                "def make_batches(count, size):",
                "    generator = torch.Generator().manual_seed(11)",
                f"    weight = torch.randn({self.inputs}, {self.outputs}, generator=generator)",
                "    for _ in range(count):",
                f"        $x = {self.x[:-1]}, generator=generator)",
                f"        yield $x, {self.y}",
            ]
        else:
            body = [
                "def make_batches(count, size):",
                f"    weight = torch.randn({self.inputs}, {self.outputs})",
                "    found = []",
                "    for _ in range(count):",
                f"        $x = {self.x}",
                f"        found.append(($x, {self.y}))",
                "    return found",
            ]
        return "\n".join(body)

    def statements(self, style: str) -> list[str]:
        made = f"make_batches({self.count}, {self.size})"
        return [f"$batches = {'list(' + made + ')' if style == 'generator' else made}"]
