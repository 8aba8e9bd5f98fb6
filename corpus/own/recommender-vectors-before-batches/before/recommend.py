import torch
import torch.nn as nn
torch.manual_seed(0)
USERS, ITEMS, DIM = 30, 40, 8


class Recommender(nn.Module):
    def __init__(self, adjacency):
        super().__init__()
        self.adjacency = adjacency
        self.users = nn.Embedding(USERS, DIM)
        self.items = nn.Embedding(ITEMS, DIM)

    def propagate(self):
        layer = torch.cat([self.users.weight, self.items.weight])
        layers = [layer]
        for _ in range(2):
            layer = self.adjacency @ layer
            layers.append(layer)
        final = torch.stack(layers).mean(0)
        return final[:USERS], final[USERS:]


links = (torch.rand(USERS, ITEMS) < 0.2).float()
top = torch.cat([torch.zeros(USERS, USERS), links], 1)
adjacency = torch.cat([top, torch.cat([links.T, torch.zeros(ITEMS, ITEMS)], 1)])
adjacency = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
model = Recommender(adjacency)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
pairs = links.nonzero()
for epoch in range(3):
    user_vectors, item_vectors = model.propagate()
    for batch in pairs[torch.randperm(len(pairs))].split(32):
        user, good = batch[:, 0], batch[:, 1]
        bad = torch.randint(0, ITEMS, (len(batch),))
        good_score = (user_vectors[user] * item_vectors[good]).sum(1)
        bad_score = (user_vectors[user] * item_vectors[bad]).sum(1)
        reg = model.users(user).pow(2).sum() + model.items(good).pow(2).sum() + model.items(bad).pow(2).sum()
        loss = nn.functional.softplus(bad_score - good_score).mean() + 1e-4 * reg / len(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
