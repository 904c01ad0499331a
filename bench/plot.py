"""SVG by hand: bars with their spread, and curves on logarithmic axes. Colours suit light and dark pages."""
import math
from xml.sax.saxutils import escape

COLORS = {"rill": "#2a9d8f", "tensorflow": "#e76f51", "tensorflow_xla": "#f4a261", "torch": "#8f6bb3", "torch_compile": "#b79bd1", "jax": "#4a7fb5", "onednn": "#888888", "onednn_blocked": "#a8a8a8",
          "tcp": "#888888", "unix": "#aaaaaa", "memcpy": "#c4c4c4"}
TEXT = "#808890"
FONT = 'font-family="sans-serif" font-size="12" fill="%s"' % TEXT


class Drawing:
    def __init__(self, width, height, title):
        self.width, self.height = width, height
        self.parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">' % (width, height, escape(title))]
        self.text(width / 2, 16, title, "middle")

    def text(self, x, y, text, anchor="start"):
        self.parts.append('<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>' % (x, y, anchor, FONT, escape(text)))

    def line(self, x1, y1, x2, y2, color=TEXT, width=1.0, dash=""):
        self.parts.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"%s/>' % (x1, y1, x2, y2, color, width, ' stroke-dasharray="%s"' % dash if dash else ""))

    def bar(self, x, y, width, height, color):
        self.parts.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>' % (x, y, max(width, 0.5), height, color))

    def path(self, points, color, dash=""):
        self.parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>' % (" ".join("%.1f,%.1f" % p for p in points), color, ' stroke-dasharray="%s"' % dash if dash else ""))
        for x, y in points:
            self.parts.append('<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x, y, color))

    def save(self, path):
        with open(path, "w") as f:
            f.write("\n".join(self.parts) + "\n</svg>\n")


class Scale:
    """A logarithmic axis from values to places."""

    def __init__(self, values, first, last):
        self.low, self.high = math.floor(math.log10(min(values)) * 3) / 3, math.ceil(math.log10(max(values)) * 3) / 3
        if self.high <= self.low:
            self.high = self.low + 1
        self.first, self.last = first, last

    def __call__(self, value):
        return self.first + (math.log10(value) - self.low) / (self.high - self.low) * (self.last - self.first)

    def marks(self):
        """1, 2 or 5 times a power of ten; only powers when there are many."""
        digits = (1, 2, 5) if self.high - self.low < 3 else (1,)
        for power in range(math.floor(self.low), math.ceil(self.high) + 1):
            for digit in digits:
                if self.low - 1e-9 <= math.log10(digit * 10.0**power) <= self.high + 1e-9:
                    yield digit * 10.0**power


def ratio_bars(path, title, rows, busy_mark="*"):
    """rows: (label, ratio summary, is busy). A line at 1: to its right Rill is faster."""
    if not rows:
        return
    left, right, step = 330, 640, 20
    d = Drawing(720, 50 + step * len(rows), title)
    scale = Scale([1] + [v for _, r, _ in rows for v in (r["least"], r["most"])], left, right)
    bottom = 30 + step * len(rows)
    for mark in scale.marks():
        d.line(scale(mark), 26, scale(mark), bottom, width=0.3)
        d.text(scale(mark), bottom + 14, "%g×" % mark, "middle")
    for i, (label, r, busy) in enumerate(rows):
        y = 30 + step * i
        a, b = sorted((scale(1), scale(r["median"])))
        d.text(left - 8, y + 12, label + (" " + busy_mark if busy else ""), "end")
        d.bar(a, y + 3, b - a, 12, COLORS["rill"] if r["median"] >= 1 else COLORS["tensorflow"])
        d.line(scale(r["least"]), y + 9, scale(r["most"]), y + 9, "#404850", 1.5)
        d.text(max(b, scale(r["most"])) + 6, y + 13, "%.2f" % r["median"])
    d.line(scale(1), 26, scale(1), bottom, width=1.5)
    d.save(path)


def curves(path, title, series, x_label, y_label, names, x_text=lambda x: "%g" % x, y_text=lambda y: "%g" % y):
    """series: {name: [(x, y), ...]}, both logarithmic."""
    series = {n: sorted(p) for n, p in series.items() if p}
    if not series:
        return
    d = Drawing(720, 330, title)
    xs, ys = [x for p in series.values() for x, _ in p], [y for p in series.values() for _, y in p]
    across, up = Scale(xs, 80, 560), Scale(ys, 280, 40)
    for y in up.marks():
        d.line(80, up(y), 560, up(y), width=0.3)
        d.text(74, up(y) + 4, y_text(y), "end")
    for x in sorted(set(xs)):
        d.line(across(x), 40, across(x), 280, width=0.3)
        d.text(across(x), 296, x_text(x), "middle")
    d.text(320, 318, x_label, "middle")
    d.text(8, 30, y_label)
    for i, (name, points) in enumerate(series.items()):
        color = COLORS.get(name, TEXT)
        d.path([(across(x), up(y)) for x, y in points], color, "4 3" if name in ("tcp", "unix", "memcpy") else "")
        d.bar(580, 44 + 20 * i, 12, 12, color)
        d.text(598, 54 + 20 * i, names.get(name, name))
    d.save(path)
