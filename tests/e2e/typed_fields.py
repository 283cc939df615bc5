# SPDX-License-Identifier: Apache-2.0
"""The fields of requests as the packages of clients declare them, and those that a server describes."""

import importlib
import typing

# Of each route: the package, the module and the class of its request.
DECLARED = {
    "/chat/completions": ("openai.types.chat.completion_create_params", "CompletionCreateParams"),
    "/completions": ("openai.types.completion_create_params", "CompletionCreateParams"),
    "/responses": ("openai.types.responses.response_create_params", "ResponseCreateParams"),
    "/responses/input_tokens": ("openai.types.responses.input_token_count_params", "InputTokenCountParams"),
    "/embeddings": ("openai.types.embedding_create_params", "EmbeddingCreateParams"),
    "/messages": ("anthropic.types.message_create_params", "MessageCreateParams"),
    "/messages (beta)": ("anthropic.types.beta.message_create_params", "MessageCreateParams"),
    "/messages/count_tokens": ("anthropic.types.message_count_tokens_params", "MessageCountTokensParams"),
}


def declared(route):
    """Names of a route's fields; None: the package is not installed."""
    module, name = DECLARED[route]
    try:
        kind = getattr(importlib.import_module(module), name)
    except ImportError:
        return None
    kinds = typing.get_args(kind) or (kind,)
    return {field for one in kinds for base in one.__mro__ + getattr(one, "__orig_bases__", ())
            for field in getattr(base, "__annotations__", {})}


def described(document, route):
    """Properties of a route's request in /openapi.json, by name."""
    body = document["paths"][route.split()[0]]["post"]["requestBody"]
    return body["content"]["application/json"]["schema"]["properties"]


def unknown(document, packages=("openai", "anthropic")):
    """Fields that a client may send and the server does not know, as 'route: field'; None without the packages."""
    found = []
    for route, (module, _) in DECLARED.items():
        if module.split(".")[0] in packages:
            names = declared(route)
            if names is None:
                return None
            found += [f"{route}: {name}" for name in sorted(names - set(described(document, route)))]
    return found
