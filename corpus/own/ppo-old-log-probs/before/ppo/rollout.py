import torch


def swing(obs, action):
    """One step of a damped pendulum; observation is (sin, cos, speed)."""
    angle = torch.atan2(obs[:, 0], obs[:, 1])
    speed = 0.95 * obs[:, 2] - 0.3 * torch.sin(angle) + 0.4 * action[:, 0].clamp(-1, 1)
    angle = angle + 0.2 * speed
    return torch.stack([angle.sin(), angle.cos(), speed], dim=1), angle.cos() - 0.05 * speed ** 2


def collect(policy, steps, envs, gamma=0.97):
    obs = torch.randn(envs, 3)
    log = {"obs": [], "action": [], "log_prob": [], "value": []}
    rewards = []
    for _ in range(steps):
        action = policy.distribution(obs).sample()
        log_prob, _, value = policy.evaluate(obs, action)
        for name, item in zip(log, (obs, action, log_prob, value)):
            log[name].append(item)
        obs, reward = swing(obs, action)
        rewards.append(reward)

    returns, following = [], policy.v(obs).squeeze(-1)
    for reward in reversed(rewards):
        following = reward + gamma * following
        returns.insert(0, following)
    data = {name: torch.cat(items) for name, items in log.items()}
    data["return"] = torch.cat(returns)
    data["advantage"] = data["return"] - data["value"]
    data["reward"] = torch.cat(rewards).mean().item()
    return data
