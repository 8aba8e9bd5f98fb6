import torch
import torch.nn as nn


class NodeMemory(nn.Module):
    """One row per node, rewritten by a recurrent cell whenever the node takes part in an event."""

    def __init__(self, nodes, width, messages):
        super().__init__()
        self.cell = nn.GRUCell(width + messages, width)
        self.register_buffer("rows", torch.zeros(nodes, width))

    def reset_memory(self):
        self.rows = torch.zeros_like(self.rows)

    def detach_memory(self):
        self.rows = self.rows.detach()

    def update(self, source, target, features):
        rows = self.rows.clone()
        for here, there in ((source, target), (target, source)):
            message = torch.cat([rows[there], features], dim=-1)
            rows[here] = self.cell(message, rows[here])
        self.rows = rows
