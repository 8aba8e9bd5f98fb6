import multiprocessing as mp

import torch

from client import train_locally
from net import Pulse

CLIENTS, ROUNDS = 2, 3


def client_main(number, inbox, outbox):
    torch.set_num_threads(1)
    torch.manual_seed(100 + number)
    while True:
        weights = inbox.get()
        if weights is None:
            return
        outbox.put((number, train_locally(number, weights)))


def main():
    torch.manual_seed(0)
    context = mp.get_context("fork")
    updates = context.Queue()
    inboxes = [context.Queue() for _ in range(CLIENTS)]
    workers = [context.Process(target=client_main, args=(k, box, updates), daemon=True)
               for k, box in enumerate(inboxes)]
    for worker in workers:
        worker.start()

    server = Pulse()
    optimizer = torch.optim.SGD(server.parameters(), lr=1.0, momentum=0.5)
    for number in range(ROUNDS):
        weights = {name: value.numpy().copy() for name, value in server.state_dict().items()}
        for box in inboxes:
            box.put(weights)
        received = dict(updates.get() for _ in workers)
        optimizer.zero_grad()
        for name, parameter in server.named_parameters():
            moved = [torch.from_numpy(received[k][0][name]) for k in sorted(received)]
            parameter.grad = parameter.detach() - torch.stack(moved).mean(dim=0)
        optimizer.step()
        losses = [received[k][1] for k in sorted(received)]
        print(f"round {number}: local losses {', '.join(f'{loss:.4f}' for loss in losses)}", flush=True)

    for box in inboxes:
        box.put(None)
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
