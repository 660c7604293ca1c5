"""The texts whose tokens and continuations make-reference.py records."""

PASSAGE = """The history of the lighthouse begins long before electricity. In the ancient world, fires were lit on \
hilltops to guide ships towards safe harbours, and the tower at Alexandria, finished around 280 BC, was counted \
among the wonders of its age. For centuries the light came from burning wood or coal, which was costly and smoky, \
and in heavy rain the flame could not be seen at all. Oil lamps brought a steadier light, but it was the lens \
invented by Augustin-Jean Fresnel in 1822 that changed everything: by bending almost all of the light into one \
narrow beam, it let sailors see a lamp more than thirty kilometres away. Keepers and their families lived beside \
the towers, trimming wicks, winding clockwork and writing in the log book each night. In the twentieth century the \
lamps were made electric, then automatic, and one after another the keepers went home. Today most ships find their \
way by satellite, yet the towers are still painted, visited and loved. The main reason people still care about \
lighthouses is that"""

# name -> prompt. "arithmetic" is there because the model ends its answer before the limit.
PROMPTS = {
    "prose": "The lighthouse keeper climbed the stairs every evening, and",
    "fact": "The largest planet in the Solar System is",
    "python": "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n    ",
    "rust": "fn main() {\n    let numbers = vec![1, 2, 3];\n    for n in &numbers {\n",
    "numbers": "1, 1, 2, 3, 5, 8, 13, 21, 34,",
    "json": '{"name": "Ada Lovelace", "born": 1815, "fields": ["mathematics", "computing"], "works": [',
    "french": "Le château de Versailles a été construit à la demande du roi",
    "japanese": "日本の首都は東京です。東京には",
    "list": "Shopping list:\n\n- eggs\n- milk\n-",
    "instruct": "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\nExplain in two sentences what a hash table is.<|im_end|>\n<|im_start|>assistant\n",
    "arithmetic": "<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n",
    "passage": PASSAGE,
}

MOE_PROMPTS = ["prose", "python", "french", "instruct"]

# What breaks byte-level BPE tokenizers: the pre-tokeniser's rules for spaces, digits and contractions, bytes that
# are no whole character, normalisation (there must be none), and special tokens inside text.
STRINGS = [
    "",
    " ",
    "  ",
    "   leading spaces",
    "trailing spaces   ",
    "in    between",
    "\n",
    "\n\n",
    "\n \n",
    " \n  \n\n   x",
    "line\nbreak\r\nand carriage\rreturn",
    "\t",
    "\t\ttabs\tinside\t",
    "  def f(x):\n\t    return x\n",
    "a",
    "Hello, world!",
    "HELLO hElLo hello",
    "0",
    "1234567890",
    "3.14159 -42 1e-7 0xFF 1,000,000",
    "2024-12-31T23:59:59Z",
    "abc123def456",
    "½ ² ③ ٣ Ⅷ",
    "I'm you're he's we'll they've she'd don't",
    "I'M YOU'RE DON'T 'tis rock'n'roll",
    "it’s a ‘curly’ “quote”",
    "...!?!?--__**//\\\\",
    "$$$ €100 £20 ¥3 %&*()[]{}<>",
    "snake_case camelCase kebab-case",
    "https://example.org/a?b=c&d=%20#e",
    "naïve café Ångström Straße œuvre",
    "nai\u0308ve cafe\u0301 A\u030angstro\u0308m",
    "z\u0351\u036b\u0343\u036a\u0302a\u0335\u0321l\u0321\u034ag\u031co",
    "日本語のテキスト、中文文本。한국어",
    "Привет мир Γειά σου שלום مرحبا नमस्ते",
    "😀",
    "🙂🙃 👍🏽 👩‍👩‍👧‍👦 🇯🇵",
    "\u00a0non\u00a0breaking\u2003em\u2009thin\u3000wide",
    "\u200bzero\u200dwidth\ufeffmarks\u202eorder",
    "\x00\x01\x1b[0m\x7f",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 \U0010ffff",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<|im_end|>",
    " <|im_end|> ",
    "text<|endoftext|>text",
    "<|im_start|><|im_start|>",
    "<|im_star|> <im_start> <|im_start",
    "<repo_name>a<file_sep>b<filename>c<gh_stars>d",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
]
