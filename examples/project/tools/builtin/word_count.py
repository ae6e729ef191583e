import json
import sys

arguments = json.load(sys.stdin)
text = arguments["text"]
words = text.split()
longest = sorted(set(words), key=lambda word: (-len(word), word))[: arguments["longest"]]
print(json.dumps({"words": len(words), "lines": len(text.splitlines()), "characters": len(text), "longest": longest}))
