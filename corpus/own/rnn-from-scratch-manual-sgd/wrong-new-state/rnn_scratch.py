import math

import torch
import torch.nn.functional as F

torch.manual_seed(1)

text = "to be or not to be that is the question whether tis nobler in the mind to suffer " * 12
vocab = sorted(set(text))
corpus = torch.tensor([vocab.index(ch) for ch in text])
batch_size, num_steps, num_hiddens, lr, clip = 4, 10, 32, 1.0, 1.0


def get_params(vocab_size, num_hiddens):
    def normal(*shape):
        return torch.randn(shape) * 0.1

    params = [normal(vocab_size, num_hiddens), normal(num_hiddens, num_hiddens), torch.zeros(num_hiddens),
              normal(num_hiddens, vocab_size), torch.zeros(vocab_size)]
    for param in params:
        param.requires_grad_(True)
    return params


def init_state(batch_size, num_hiddens):
    return torch.zeros(batch_size, num_hiddens)


def rnn(inputs, state, params):
    W_xh, W_hh, b_h, W_hq, b_q = params
    outputs = []
    for X in inputs:
        state = torch.tanh(X @ W_xh + state @ W_hh + b_h)
        outputs.append(state @ W_hq + b_q)
    return torch.cat(outputs), state


def sequential_batches(corpus, batch_size, num_steps):
    length = (len(corpus) - 1) // batch_size
    Xs = corpus[:length * batch_size].view(batch_size, length)
    Ys = corpus[1:length * batch_size + 1].view(batch_size, length)
    for i in range(0, length - num_steps + 1, num_steps):
        yield Xs[:, i:i + num_steps], Ys[:, i:i + num_steps]


def grad_clipping(params, theta):
    norm = torch.sqrt(sum((p.grad ** 2).sum() for p in params))
    if norm > theta:
        for param in params:
            param.grad *= theta / norm


params = get_params(len(vocab), num_hiddens)
for epoch in range(4):
    state, total, count = init_state(batch_size, num_hiddens), 0.0, 0
    for X, Y in sequential_batches(corpus, batch_size, num_steps):
        state = init_state(batch_size, num_hiddens)
        y_hat, state = rnn(F.one_hot(X.T, len(vocab)).float(), state, params)
        loss = F.cross_entropy(y_hat, Y.T.reshape(-1))
        loss.backward()
        grad_clipping(params, clip)
        with torch.no_grad():
            for param in params:
                param -= lr * param.grad
                param.grad.zero_()
        total, count = total + loss.item(), count + 1
    print(f"epoch {epoch + 1}, perplexity {math.exp(total / count):.2f}")
