"""Character-level language model on a small synthetic text."""
import argparse

import torch
import torch.nn as nn

TEXT = ("the cat sat on the mat. the dog ran after the cat. a bird saw the dog and sang. " * 30)


class CharModel(nn.Module):
    def __init__(self, vocab, emb=16, hidden=32, layers=1):
        super().__init__()
        self.embed = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hidden, layers)
        self.decoder = nn.Linear(hidden, vocab)
        self.layers, self.hidden = layers, hidden

    def forward(self, tokens, hidden):
        output, hidden = self.lstm(self.embed(tokens), hidden)
        return self.decoder(output), hidden

    def init_hidden(self, batch_size):
        weight = next(self.parameters())
        return (weight.new_zeros(self.layers, batch_size, self.hidden),
                weight.new_zeros(self.layers, batch_size, self.hidden))


def batchify(data, batch_size):
    length = data.size(0) // batch_size
    return data[:length * batch_size].view(batch_size, length).t().contiguous()


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].reshape(-1)


def train(model, source, optimizer, args, vocab):
    model.train()
    criterion = nn.CrossEntropyLoss()
    hidden = model.init_hidden(args.batch_size)
    running = 0.0
    for i in range(0, source.size(0) - 1, args.bptt):
        data, targets = get_batch(source, i, args.bptt)
        optimizer.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output.view(-1, vocab), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        running += loss.item()
    return running / (source.size(0) // args.bptt)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--bptt", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--clip", type=float, default=0.25)
    args = parser.parse_args()

    torch.manual_seed(1111)
    chars = sorted(set(TEXT))
    index = {c: i for i, c in enumerate(chars)}
    source = batchify(torch.tensor([index[c] for c in TEXT]), args.batch_size)
    model = CharModel(len(chars))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for epoch in range(1, args.epochs + 1):
        print(f"epoch {epoch}: loss {train(model, source, optimizer, args, len(chars)):.3f}")


if __name__ == "__main__":
    main()
