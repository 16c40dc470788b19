"""Chat templates in the ways models have them, and the chats they are tried on."""

from typing import Any

CHATML = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\nCall what helps. The signatures are:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(last_user=messages|length - 1, seen=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.seen and message.role == "user" %}
        {%- set ns.seen = true %}
        {%- set ns.last_user = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}{% set content = message.content %}{% else %}{% set content = '' %}{% endif %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- if '</think>' in content and loop.index0 < ns.last_user %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n<tool_call>\\n{"name": "' ~ call.function.name ~ '", "arguments": ' }}
            {{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {{- '<|im_start|>user\\n<tool_response>\\n' ~ content ~ '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""  # noqa: E501

HEADERS = """\
{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = strftime_now("%B %Y") %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {{- "Answer with JSON for one of these:\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
        {%- generation %}
        {{- message['content'] | trim + '<|eot_id|>' }}
        {%- endgeneration %}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One tool call at a time!") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- call.arguments | tojson }}
        {{- "}<|eot_id|>" }}
    {%- else %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" + (message.content | tojson) }}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

INST = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must take turns: user, assistant, user, assistant') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}"
    "{% endif %}{% endfor %}"
)

TURNS = """\
{%- set loop_messages = messages[1:] if messages[0]["role"] == "system" else messages %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{{- bos_token }}
{% for message in loop_messages %}
    {% if message["role"] == "skip" %}
        {% continue %}
    {% endif %}
    {% if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}{{- ", " }}{% endif %}
                {%- endfor %}
                {{- "}}" if loop.last else "}}, " }}
            {%- endfor %}
            {{- "] [/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {{- "[INST] " + message["content"] + "[/INST]" }}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "stop" %}
        {%- break %}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, not " ~ message.role) }}
    {%- endif %}
{%- endfor %}
{{- dict(a=1, **{"b": 2}) | items | map("join", "=") | join(";") }}
"""

# What templates of many families do, each at least once.
IDIOMS = """\
{%- macro shown(value, depth=0) -%}
    {%- if value is mapping -%}
        {{ '{' }}{% for key, inner in value | dictsort %}{{ key }}={{ shown(inner, depth + 1) }};{% endfor %}{{ '}' }}
    {%- elif value is string or value is number or value is boolean or value is none -%}
        {{ value | string | trim }}
    {%- elif value is iterable and value is sequence -%}
        [{% for inner in value %}{{ shown(inner, depth + 1) }}{{ ", " if not loop.last }}{% endfor %}]
    {%- endif -%}
{%- endmacro -%}
{%- macro framed(name) -%}<{{ name }}>{{ caller() }}</{{ name }}>{%- endmacro -%}
{%- set ns = namespace(users=0, text="", roles=[]) -%}
{%- set tools = tools | default([], true) -%}
{%- for message in messages -%}
    {%- set content = message.content | default("", true) -%}
    {%- set ns.roles = ns.roles + [message.get("role", "none")] -%}
    {%- if loop.first or message.role != loop.previtem.role %}{{ "#" ~ loop.index ~ "/" ~ loop.length }}{% endif -%}
    {%- if loop.nextitem is defined and loop.nextitem["role"] == "tool" %}{{ loop.revindex0 }}{% endif -%}
    {%- if "</think>" in content -%}
        {%- set thought = content.split("</think>")[0].rstrip("\\n").split("<think>")[-1].lstrip("\\n") -%}
        {%- set content = content.split("</think>")[-1].strip() -%}
        {{ "%s|%-5d|%.2f" | format(thought, loop.index0, 2.5) }}{{ "{}: {!r}".format(thought, content) }}
    {%- endif -%}
    {%- set block -%}{{ content[:9] }}{{ content[-3:][::-1] }}{{ content.replace("Yes", "No").upper() }}{%- endset -%}
    {%- call framed(message["role"]) %}{{ block | indent(2, true) }}{% endcall -%}
    {%- filter upper %}{{ loop.cycle("odd", "even") }}{% endfilter -%}
    {%- for call in message.tool_calls if call.function is defined -%}
        {{ call.function.name.startswith("wea") and call.function.name.endswith(("er", "x")) }}
        {{- call.function.arguments | items | map("first") | join(", ") }}{{ call | tojson(indent=4) }}
        {{- call.function.arguments.items() | list | length }}{{ call.function.arguments.keys() | list }}
        {{- call | tojson(separators=(",", ":"), sort_keys=True, ensure_ascii=True) }}
    {%- endfor -%}
{%- else -%}
    {{ "nothing" }}
{%- endfor -%}
{{ ns.roles | unique | sort | join("/") }}{{ ns.roles | select("in", ["user", "tool"]) | list | length }}
{{- messages | selectattr("role", "equalto", "user") | map(attribute="content") | map("trim") | first }}
{{- messages | rejectattr("role", "eq", "user") | list | length }}{{ tools | map(attribute="function.name") | list }}
{{- [3, 1, 2] | max }}{{ [3, 1, 2] | min }}{{ [3, 1, 2] | sum }}{{ 7 // 2 }}{{ 7 % 4 }}{{ 2 ** 10 }}{{ 7 / 2 }}
{{- 2.567 | round(1) }}{{ "42" | int + 1 }}{{ 1 < 2 <= 2 }}{{ (1, 2) == (1, 2) }}{{ "ab" * 3 }}{{ [0] * 2 }}
{{- range(1, 6, 2) | list }}{{ "a-b c" | title }}{{ "x y".title() }}{{ "a,b".rsplit(",", 1) }}{{ "k: v".partition(": ") }}
{{- " ".join(["a", "b"]) }}{{ "abc".find("c") }}{{ "l1\\nl2".splitlines() | last }}{{ [1, 2, 3] | batch(2) | list }}
{%- set comma, turn = joiner(", "), cycler("a", "b") %}{{ comma() }}{{ turn.next() }}{{ comma() }}{{ turn.next() }}
{%- set merged = dict(a=1, **{"b": [1, {"c": none}]}) %}{{ shown(merged) }}{{ shown(tools) }}{{ merged | length }}
{%- if bos_token is defined and not (missing is defined or "x" is number) %}{{ bos_token }}{% endif %}
"""  # noqa: E501

TEMPLATES = {
    "ChatML": CHATML,
    "headers": HEADERS,
    "INST": INST,
    "turns": TURNS,
    "idioms": IDIOMS,
}
SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}

SYSTEM = {"role": "system", "content": " You are terse & kind: <b>é</b> 你好 👩‍🚀 "}
USER = {"role": "user", "content": "  What's 2 < 3? \"Yes\" or 'no'\\n{{ 7 * 7 }} {% raw %} "}
ASSISTANT = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes. \n"}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "type": "function",
            "function": {"name": "weather", "arguments": {"city": "Köln", "n": 1.5}},
        }
    ],
}
RESULT = {"role": "tool", "name": "weather", "content": '{"sky": "grau"}'}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "What the sky is like <now>",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}

CALLS: list[dict[str, Any]] = [
    {"messages": [USER]},
    {"messages": [USER], "add_generation_prompt": True},
    {"messages": [SYSTEM, USER, ASSISTANT, USER], "add_generation_prompt": True},
    {"messages": [SYSTEM, USER], "tools": [TOOL, TOOL], "add_generation_prompt": True},
    {"messages": [USER, CALL, RESULT, ASSISTANT, USER], "tools": [TOOL]},
    {"messages": [USER], "add_generation_prompt": True, "enable_thinking": False},
    {"messages": [USER, USER]},
    {"messages": [USER, {"role": "skip", "content": ""}, {"role": "stop", "content": ""}, USER]},
    {"messages": [{"role": "user"}]},
]
