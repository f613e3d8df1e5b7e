#include "cmd/sandbox_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "base/text.h"
#include "gpu/product.h"

namespace nos::cmd {
namespace {

// ANSI select-graphic-rendition sequences (ECMA-48).
constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kUsed = "\x1b[30;42m";
constexpr std::string_view kFree = "\x1b[30;46m";
constexpr std::string_view kChanging = "\x1b[33m";

constexpr size_t kLabelWidth = 24;   // less on a narrow terminal
constexpr size_t kSlotsAtLeast = 4;  // characters per slot if the mode column is shown

constexpr std::string_view kKeys[] = {
    "  arrows, j, k         show the next GPUs, or the ones before",
    "  Page Up, Page Down   ten GPUs further",
    "  Home                 show the first GPUs",
    "  ?, Esc               back to the cluster",
    "  q, Ctrl-C            end the sandbox",
};

size_t Minus(size_t room, size_t taken) { return room - std::min(room, taken); }

std::string Paint(std::string_view text, std::string_view how, bool colour) {
  if (!colour || text.empty()) return std::string(text);
  return std::string(how) + std::string(text) + std::string(kReset);
}

std::string Pad(std::string_view text, size_t width) {
  std::string out = Truncate(Printable(std::string(text)), width);
  out.append(width - DisplayWidth(out), ' ');
  return out;
}

std::string PodName(std::string_view key) {
  return std::string(key.substr(key.find('/') == std::string_view::npos ? 0 : key.find('/') + 1));
}

std::string SpanText(const SlotSpan& span, size_t width) {
  const std::string label =
      span.pod.empty() ? span.profile + " free" : PodName(span.pod) + " " + span.profile;
  return Pad(label, width);
}

std::string Header(const ViewModel& model) {
  return fmt::format(
      "nos sandbox   time {}   {}   running {}   waiting {}   finished {}   {}Ctrl-C ends it",
      FormatAge(model.elapsed), SpeedText(model.speed, model.reached), model.running,
      model.waiting.size(), model.finished, model.keys ? "? keys   " : "");
}

// "node-1 gpu 0 A100  MIG  |web 1g…|....|": on a narrow terminal slots shrink to two characters
// each, then the label shrinks, then slots shrink to one character. Below that no slots are shown.
std::string GpuLine(const GpuRow& gpu, size_t columns, size_t mode, bool colour) {
  const std::string name = Printable(fmt::format("{} gpu {} {}", gpu.node, gpu.index, gpu.model));
  constexpr size_t kMarkAndEdge = 2;
  const size_t slots = gpu.cells();
  if (columns < slots + kMarkAndEdge) return Truncate(name, columns);
  if (columns < kMarkAndEdge + kLabelWidth + mode + kSlotsAtLeast * slots) mode = 0;
  const size_t room = columns - kMarkAndEdge - mode;
  const size_t label = std::min(kLabelWidth, Minus(room, 2 * slots));
  const size_t cell = std::clamp<size_t>((room - label) / slots, 1, 9);
  const std::string mark = gpu.changing ? Paint("*", kChanging, colour) : " ";
  return Pad(name, label) + mark + Pad(gpu.sharing_mode, mode) + RenderSlots(gpu, cell, colour);
}

std::string PoolLine(const PoolRow& pool) {
  return fmt::format("pool {:<18} {} {:<5}   {} coming   {} going   ({} to {})   cost {:.2f}",
                     pool.name, pool.nodes, pool.nodes == 1 ? "node" : "nodes", pool.coming,
                     pool.going, pool.min, pool.max, pool.cost);
}

// "QUOTAS   production 120 of 200 gpu-memory   research 260 of 200 gpu-memory, borrows 60"
std::string QuotaLine(const std::vector<QuotaRow>& quotas) {
  std::string text = "QUOTAS";
  for (const QuotaRow& quota : quotas) {
    text += fmt::format("   {} {} of {} {}", quota.name, quota.used, quota.min, quota.resource);
    if (!quota.borrowed.empty()) text += ", borrows " + quota.borrowed;
  }
  return text;
}

bool WaitInSeveralNamespaces(const std::vector<WaitingRow>& rows) {
  const auto ns = [](const WaitingRow& row) {
    return std::string_view(row.pod).substr(0, row.pod.find('/'));
  };
  return std::ranges::any_of(rows,
                             [&](const WaitingRow& row) { return ns(row) != ns(rows.front()); });
}

// Number of lines of each part: GPUs first, then pending pods, then decisions.
struct Shares {
  size_t gpus, waiting, decisions;
  bool remedies;  // a second line for each pending pod
};
Shares Share(const ViewModel& model, size_t lines) {
  constexpr size_t kFixed = 8;  // header, titles, blank lines, hint
  const size_t room = lines > kFixed + 3 ? lines - kFixed : 3;
  Shares shares{};
  shares.gpus = std::min(model.gpus.size(), std::max<size_t>(1, room / 2));
  shares.waiting = std::min(model.waiting.size(), std::max<size_t>(1, room / 4));
  const auto remedies = static_cast<size_t>(std::count_if(
      model.waiting.begin(), model.waiting.begin() + static_cast<std::ptrdiff_t>(shares.waiting),
      [](const WaitingRow& row) { return !row.remedy.empty(); }));
  size_t taken = shares.gpus + shares.waiting;
  // Leave at least a quarter of the lines to decisions.
  shares.remedies = taken + remedies + std::min(model.decisions.size(), room / 4) <= room;
  if (shares.remedies) taken += remedies;
  shares.decisions = std::min(model.decisions.size(), room - std::min(room - 1, taken));
  return shares;
}

// Truncates between words: "no room for 2 x 3g.20gb beside …".
std::string CutWords(const std::string& text, size_t width) {
  std::string cut = Truncate(text, width);
  if (cut == text) return cut;
  const size_t space = cut.rfind(' ');
  // One long word, or the last word ends exactly at the limit.
  if (space == std::string::npos || space < cut.size() / 2) return cut;
  return cut.substr(0, space) + " …";
}

class Frame {
 public:
  Frame(ViewSize size, bool colour) : size_(size), colour_(colour) {}
  void Plain(std::string_view text) { Add(Fit(text)); }
  void Painted(std::string_view text, std::string_view how) { Add(Paint(Fit(text), how, colour_)); }
  // `text` is already coloured, truncated and printable.
  void Add(std::string text) {
    if (lines_ >= size_.lines) return;
    out_ += std::move(text) + "\n";
    ++lines_;
  }
  void More(size_t all, size_t shown, std::string_view what) {
    if (all > shown) Painted(fmt::format("  … {} more {}", all - shown, what), kDim);
  }
  std::string Take() { return std::move(out_); }

 private:
  // Names and reasons are untrusted input: only printable characters are written.
  std::string Fit(std::string_view text) const {
    return Truncate(Printable(std::string(text)), size_.columns);
  }

  ViewSize size_;
  bool colour_;
  std::string out_;
  size_t lines_ = 0;
};

}  // namespace

size_t ModeColumn(const std::vector<GpuRow>& gpus) {
  const bool all_mig = std::ranges::all_of(gpus, [](const GpuRow& gpu) {
    return gpu.sharing_mode.empty() || gpu.sharing_mode == gpu::kMigMode;
  });
  return all_mig ? 0 : gpu::kTimeSlicingMode.size() + 1;
}

bool FallsBehind(double asked, double reached) { return reached < 0.9 * asked; }

std::string SpeedText(double asked, double reached) {
  if (!FallsBehind(asked, reached)) return fmt::format("speed {:g}x", asked);
  return fmt::format("speed {:g}x asked, {:.2g}x reached", asked, reached);
}

void LayOut(std::vector<SlotSpan>& shares) {
  std::ranges::stable_sort(shares, {}, &SlotSpan::start);
  int next = 0;
  for (SlotSpan& share : shares) {
    share.start = next;
    next += share.size;
  }
}

std::string RenderSlots(const GpuRow& gpu, size_t cell, bool colour) {
  std::string out = "|";
  const auto slots = static_cast<size_t>(gpu.slots);
  size_t column = 0;
  // Draws up to the line after the slot before `slot`. A piece too narrow for the line has none.
  const auto piece = [&](int slot, const auto& text, std::string_view how) {
    const size_t end = cell * gpu.cells() * static_cast<size_t>(slot) / slots;
    if (end <= column) return;
    out += Paint(text(end - column - 1), how, colour) + "|";
    column = end;
  };
  const auto dots = [](size_t width) { return std::string(width, '.'); };
  for (const SlotSpan& span : gpu.spans) {
    piece(span.start, dots, kDim);
    piece(
        span.start + span.size, [&](size_t width) { return SpanText(span, width); },
        span.pod.empty() ? kFree : kUsed);
  }
  piece(gpu.slots, dots, kDim);
  return out;
}

std::string RenderFrame(const ViewModel& model, ViewSize size, bool colour) {
  Frame frame(size, colour);
  if (model.help) {
    frame.Painted(Header(model), kBold);
    frame.Plain("");
    frame.Painted("KEYS", kBold);
    for (const std::string_view line : kKeys) frame.Plain(line);
    return frame.Take();
  }
  const size_t pools = std::min(model.pools.size(), size.lines / 4);
  const size_t quotas = model.quotas.empty() ? 0 : 1;
  const Shares shares = Share(model, Minus(size.lines, pools + quotas));
  frame.Painted(Header(model), kBold);
  frame.Plain("");
  const size_t mode = ModeColumn(model.gpus);
  const size_t first = std::min(model.first_gpu, model.gpus.size() - shares.gpus);
  for (size_t i = first; i < first + shares.gpus; ++i) {
    frame.Add(GpuLine(model.gpus[i], size.columns, mode, colour));
  }
  if (shares.gpus < model.gpus.size()) {
    frame.Painted(fmt::format("  … GPUs {} to {} of {}; arrow keys show others", first + 1,
                              first + shares.gpus, model.gpus.size()),
                  kDim);
  }
  for (size_t i = 0; i < pools; ++i) frame.Plain(PoolLine(model.pools[i]));
  if (quotas > 0) frame.Plain(QuotaLine(model.quotas));
  frame.Plain("");
  frame.Painted("WAITING", kBold);
  if (model.waiting.empty()) frame.Painted("  no pod is waiting", kDim);
  const bool with_namespace = WaitInSeveralNamespaces(model.waiting);
  const size_t width = with_namespace ? 32 : 24;
  for (size_t i = 0; i < shares.waiting; ++i) {
    const WaitingRow& row = model.waiting[i];
    const std::string line = fmt::format(
        "  {:<{}} {:<16} {:>6}  {}", Truncate(with_namespace ? row.pod : PodName(row.pod), width),
        width, Truncate(row.asks, 16), FormatAge(row.age), row.why);
    frame.Plain(CutWords(line, size.columns));
    if (shares.remedies && !row.remedy.empty()) {
      frame.Painted(CutWords("    " + row.remedy, size.columns), kDim);
    }
  }
  frame.More(model.waiting.size(), shares.waiting, "pods");
  frame.Painted("DECISIONS, newest first", kBold);
  for (size_t i = 0; i < shares.decisions; ++i) {
    const DecisionRow& row = model.decisions[model.decisions.size() - 1 - i];
    const std::string ago = fmt::format("  {:>6} ago  ", FormatAge(model.elapsed - row.at));
    frame.Plain(CutWords(ago + row.text, size.columns));
  }
  frame.Painted(model.hint, kDim);
  return frame.Take();
}

}  // namespace nos::cmd
