import torch
import torch.nn as nn


def ppo_update(policy, optimizer, data, epochs, minibatch, clip=0.2):
    advantage = (data["advantage"] - data["advantage"].mean()) / (data["advantage"].std() + 1e-8)
    for _ in range(epochs):
        for index in torch.randperm(len(data["obs"])).split(minibatch):
            log_prob, entropy, value = policy.evaluate(data["obs"][index], data["action"][index])
            ratio = (log_prob - data["log_prob"][index]).exp()
            gain = torch.min(ratio * advantage[index], ratio.clamp(1 - clip, 1 + clip) * advantage[index])
            policy_loss = -gain.mean()
            value_loss = (value - data["return"][index]).pow(2).mean()
            loss = policy_loss + 0.5 * value_loss - 0.003 * entropy.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
    return policy_loss.item(), value_loss.item()
