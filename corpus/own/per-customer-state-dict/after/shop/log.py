def visits(rng, customers, products, rounds):
    """Yield (customer, basket, next product): everybody once per round, in a new order."""
    taste = {c: rng.randrange(products) for c in range(customers)}
    for _ in range(rounds):
        order = list(range(customers))
        rng.shuffle(order)
        for customer in order:
            liked = taste[customer]
            basket = [liked, (liked + 1) % products, rng.randrange(products)]
            yield customer, basket, (liked + 2) % products
