import os

import torch


def load_documents(cache, config):
    """Tokens and tags; a tag depends on the last marker token (0, 1 or 2) that was seen."""
    if os.path.exists(cache):
        return torch.load(cache)
    documents = []
    for _ in range(config["documents"]):
        tokens = torch.randint(0, config["vocabulary"], (40,))
        tags, marker = [], 0
        for token in tokens.tolist():
            marker = token if token < config["tags"] else marker
            tags.append(marker)
        documents.append((tokens, torch.tensor(tags)))
    os.makedirs(os.path.dirname(cache), exist_ok=True)
    torch.save(documents, cache)
    return documents


def chunks(tokens, tags, size):
    yield from zip(tokens.split(size), tags.split(size))
