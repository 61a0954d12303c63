"""Texts written to break out of a comment, a string, an expression, a path or a template."""

from __future__ import annotations

MARK = "EVIL"
HOSTILE = (
    f'"{MARK}',
    f"'; rm -rf {MARK}; '",
    f"{{{{ {MARK} }}}}",
    f"{{% include '{MARK}' %}}",
    f'fp16\n#include "{MARK}"',
    f"fp16 {MARK};",
    f"fp16\0{MARK}",
    f"fp16\r\n{MARK}",
    f"*/ {MARK} /*",
    f"fp32 &&//*/ extern int {MARK}(void); __attribute__((constructor)) static void f(void){{ {MARK}(); }} /*",
    f"{MARK}()",
    f"\\\n{MARK}",
    f"??/{MARK}",
    f"$({MARK})",
    f"`{MARK}`",
    f"../../{MARK}",
    f"/{MARK}",
    f"ﬀ{MARK}",
    f"\u202e{MARK}",
    f"\ud800{MARK}",
)
