import json
import os

import torch
import torch.nn.functional as F

from tagger.data import chunks, load_documents
from tagger.model import Tagger

RUN_DIR = os.path.join("runs", "baseline")


def main():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "config.json")) as file:
        config = json.load(file)
    torch.manual_seed(config["seed"])
    os.makedirs(RUN_DIR)
    documents = load_documents(os.path.join("cache", "tokens.pt"), config)
    model = Tagger(config["vocabulary"], config["width"], config["tags"])
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])

    with open(os.path.join(RUN_DIR, "log.txt"), "w") as log:
        for epoch in range(config["epochs"]):
            total, count = 0.0, 0
            for tokens, tags in documents:
                state = None
                for piece, wanted in chunks(tokens, tags, config["chunk"]):
                    scores, state = model(piece, state)
                    loss = F.cross_entropy(scores, wanted)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    total, count = total + loss.item(), count + 1
            log.write(f"{epoch}\t{total / count:.5f}\n")
            torch.save(model.state_dict(), os.path.join(RUN_DIR, f"epoch{epoch}.pt"))
            print(f"epoch {epoch}: {total / count:.4f}")


if __name__ == "__main__":
    main()
