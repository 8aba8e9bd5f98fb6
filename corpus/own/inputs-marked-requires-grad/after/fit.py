import torch
from torch import nn, optim

torch.manual_seed(100)
n, features, classes, batch_size = 480, 7, 3, 40

y = torch.randint(classes, (n,))
x = (torch.randn(classes, features)[y] * 2 + torch.randn(n, features) * 1.5 + 4)

# standardise
mean, std = x.mean(0), x.std(0)
x = (x - mean) / std
x_train, y_train = x[:400], y[:400]
x_test, y_test = x[400:], y[400:]

model = nn.Sequential(nn.Linear(features, 20), nn.Sigmoid(), nn.Linear(20, classes))
loss_fn = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.02)

for epoch in range(6):
    permutation = torch.randperm(len(x_train))
    for i in range(0, len(x_train), batch_size):
        indices = permutation[i:i + batch_size]
        batch_x, batch_y = x_train[indices], y_train[indices]
        outputs = model(batch_x)
        loss = loss_fn(outputs, batch_y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean()
    print("Epoch {}: loss {:.4f}, test accuracy {:.3f}".format(epoch + 1, loss.item(), accuracy.item()))
