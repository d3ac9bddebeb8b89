"""Credentials of every known kind, which are nobody's: made after the shapes that issuers and gitleaks name.

The oracle is gitleaks' list of rules (`config/gitleaks.toml` of gitleaks/gitleaks at b58d3f102).
"""

from __future__ import annotations

import secrets
import string


def letters(count: int, of: str = string.ascii_letters + string.digits) -> str:
    return "".join(secrets.choice(of) for _ in range(count))


HEX, UPPER, DIGITS = "0123456789abcdef", string.ascii_uppercase, string.digits

#: gitleaks' rule → the table's word for it, and a token of that shape.
GITLEAKS = {
    "aws-access-token": ("an AWS key id", f"AKIA{letters(16, UPPER)}"),
    "aws-access-token, of a role": ("an AWS key id", f"ASIA{letters(16, UPPER)}"),
    "anthropic-api-key": ("an Anthropic key", f"sk-ant-api03-{letters(93)}AA"),
    "anthropic-admin-api-key": ("an Anthropic key", f"sk-ant-admin01-{letters(93)}AA"),
    "azure-ad-client-secret": ("an Azure client secret", f"{letters(3)}8Q~{letters(34)}"),
    "databricks-api-token": ("a Databricks token", f"dapi{letters(32, HEX)}"),
    "gcp-api-key": ("a Google API key", f"AIza{letters(35)}"),
    "github-pat": ("a GitHub token", f"ghp_{letters(36)}"),
    "github-app-token": ("a GitHub token", f"ghs_{letters(36)}"),
    "github-oauth": ("a GitHub token", f"gho_{letters(36)}"),
    "github-refresh-token": ("a GitHub token", f"ghr_{letters(36)}"),
    "github-fine-grained-pat": ("a GitHub token", f"github_pat_{letters(22)}_{letters(59)}"),
    "gitlab-pat": ("a GitLab token", f"glpat-{letters(20)}"),
    "gitlab-pat-routable": ("a GitLab token", f"glpat-{letters(27)}.{letters(2)}.{letters(7)}"),
    "gitlab-ptt": ("a GitLab token", f"glptt-{letters(40, HEX)}"),
    "gitlab-deploy-token": ("a GitLab token", f"gldt-{letters(20)}"),
    "gitlab-runner-authentication-token": ("a GitLab token", f"glrt-{letters(20)}"),
    "gitlab-cicd-job-token": ("a GitLab token", f"glcbt-{letters(2)}_{letters(20)}"),
    "huggingface-access-token": ("a Hugging Face token", f"hf_{letters(34, string.ascii_letters)}"),
    "jwt": ("a web token", f"eyJ{letters(17)}.eyJ{letters(17)}.{letters(20)}"),
    "npm-access-token": ("an npm token", f"npm_{letters(36)}"),
    "openai-api-key": ("an OpenAI key", f"sk-proj-{letters(74)}T3BlbkFJ{letters(74)}"),
    "openai-api-key, of old": ("an OpenAI key", f"sk-{letters(20)}T3BlbkFJ{letters(20)}"),
    "openrouter-api-key": ("an OpenRouter key", f"sk-or-v1-{letters(64, HEX)}"),
    "pulumi-api-token": ("a Pulumi token", f"pul-{letters(40, HEX)}"),
    "pypi-upload-token": ("a PyPI token", f"pypi-AgEIcHlwaS5vcmc{letters(60)}"),
    "sendgrid-api-token": ("a SendGrid key", f"SG.{letters(22)}.{letters(43)}"),
    "stripe-access-token": ("a Stripe key", f"sk_live_{letters(24)}"),
    "stripe-access-token, restricted": ("a Stripe key", f"rk_live_{letters(99)}"),
    "slack-bot-token": ("a Slack token", f"xoxb-{letters(12, DIGITS)}-{letters(12, DIGITS)}-{letters(24)}"),
    "slack-user-token": ("a Slack token", f"xoxp-{'-'.join(letters(12, DIGITS) for _ in range(3))}-{letters(32)}"),
    "slack-config-access-token": ("a Slack token", f"xoxe.xoxp-1-{letters(163)}"),
    "slack-app-token": ("a Slack token", f"xapp-1-A{letters(10, UPPER)}-{letters(13, DIGITS)}-{letters(64, HEX)}"),
    "slack-webhook-url": (
        "a Slack webhook",
        f"https://hooks.slack.com/services/T{letters(8)}/B{letters(8)}/{letters(24)}",
    ),
}
#: Forms that its issuers document, and that gitleaks has by other means.
OTHERS = {
    "Azure Storage": ("an Azure account key", f"AccountKey={letters(86)}=="),
    "W&B": ("a W&B key", f"wandb_v1_{letters(27)}_{letters(49)}"),
    "RunPod": ("a RunPod key", f"rpa_{letters(46)}"),
    "Replicate": ("a Replicate token", f"r8_{letters(37)}"),
    "Groq": ("a Groq key", f"gsk_{letters(52)}"),
    "Google OAuth": ("a Google token", f"ya29.{letters(60)}"),
    "Google client": ("a Google client secret", f"GOCSPX-{letters(28)}"),
}
#: What no reader may see of a token: its last characters.
END = 12
