// Frame of `nos top`: GPUs as rows of slots, pods below them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.h"
#include "cmd/query/top_model.h"

namespace nos::cmd {
namespace {

// ANSI select-graphic-rendition sequences (ECMA-48).
constexpr std::string_view kReset = "\x1b[0m", kBold = "\x1b[1m", kDim = "\x1b[2m";
constexpr std::string_view kWaits = "\x1b[33m";

constexpr Duration kSilent = std::chrono::seconds(30);
constexpr size_t kNode = 22, kUse = 6, kMemory = 10, kWidestCell = 9;
constexpr size_t kState = 11, kName = 30, kSlice = 14, kWhere = 20, kAge = 8;

size_t Minus(size_t room, size_t taken) { return room - std::min(room, taken); }

std::string Pad(const std::string& text, size_t width) {
  std::string out = Truncate(Printable(text), Minus(width, 1));
  out.append(Minus(width, DisplayWidth(out)), ' ');
  return out;
}

std::string Percent(std::optional<double> share) {
  return share ? fmt::format("{:.0f} %", *share * 100) : "-";
}

// MiB, printed as GiB.
std::string Gib(double mib) {
  const double gib = mib / 1024;
  return gib > 0 && gib < 9.95 ? fmt::format("{:.1f}", gib) : fmt::format("{:.0f}", gib);
}

std::string MemoryText(const TopGpu& gpu) {
  if (!gpu.memory) return "-";
  return gpu.capacity ? fmt::format("{}/{}G", Gib(*gpu.memory), Gib(*gpu.capacity))
                      : Gib(*gpu.memory) + "G";
}

class Lines {
 public:
  Lines(ViewSize size, bool colour) : size_(size), colour_(colour) {}
  void Add(std::string_view text, std::string_view how = "") {
    const std::string line = Truncate(Printable(std::string(text)), size_.columns);
    Put(colour_ && !how.empty() ? fmt::format("{}{}{}", how, line, kReset) : line);
  }
  // `line` is already coloured, truncated and printable.
  void Put(const std::string& line) {
    if (lines_++ < size_.lines) text_ += line + "\n";
  }
  void More(size_t all, size_t shown, std::string_view what) {
    if (all > shown) Add(fmt::format("… {} more {}", all - shown, what), kDim);
  }
  std::string Take() { return std::move(text_); }

 private:
  const ViewSize size_;
  const bool colour_;
  size_t lines_ = 0;
  std::string text_;
};

std::string Header(const TopRows& rows) {
  std::string text = "nos top   ";
  if (!rows.ns.empty()) text += fmt::format("namespace {}   ", rows.ns);
  text += fmt::format("{} GPUs on {} nodes", rows.gpus.size(), rows.nodes);
  if (rows.allocated) text += "   allocated " + Percent(rows.allocated);
  if (rows.used) text += "   used " + Percent(rows.used);
  text += fmt::format("   running {}   waiting {}", rows.running, rows.waiting);
  if (rows.silent >= kSilent) text += fmt::format("   measured {} ago", FormatAge(rows.silent));
  return text;
}

// Slots take at least one character each; a narrower terminal shows no slots.
std::string GpuLine(const TopGpu& gpu, size_t columns, size_t mode, bool colour) {
  const size_t label = std::min(kNode, columns / 3);
  const std::string name = Pad(fmt::format("{} gpu {}", gpu.row.node, gpu.row.index), label);
  const std::string facts = Pad(Percent(gpu.utilization), kUse) + Pad(MemoryText(gpu), kMemory) +
                            Pad(gpu.row.sharing_mode, mode);
  if (!gpu.health.empty()) return Truncate(Printable(name + facts + gpu.health), columns);
  const size_t slots = gpu.row.cells();
  const size_t room = Minus(columns, label + kUse + kMemory + mode + 1);
  if (room < slots) return Truncate(name + facts, columns);
  const size_t cell = std::min(room, kWidestCell * 8) / slots;
  return name + facts + RenderSlots(gpu.row, cell, colour);
}

// Width of the sharing mode column; 0 on a narrow terminal.
size_t ModeWidth(const TopRows& rows, size_t columns) {
  constexpr size_t kSlots = 32;  // minimum characters for slots
  std::vector<GpuRow> gpus;
  gpus.reserve(rows.gpus.size());
  for (const TopGpu& gpu : rows.gpus) gpus.push_back(gpu.row);
  const size_t mode = ModeColumn(gpus);
  return columns < kNode + kUse + kMemory + mode + kSlots ? 0 : mode;
}

struct PodColumns {
  size_t name, slice, where;
};

PodColumns ColumnsFor(size_t columns) {
  if (columns >= kState + kName + kSlice + kWhere + kUse + kMemory + kAge) {
    return {kName, kSlice, kWhere};
  }
  const size_t room = Minus(columns, kState + kUse + kAge);
  return {room / 2, room / 4, room / 4};
}

std::string PodLine(const TopPod& pod, const PodColumns& columns) {
  std::string line = Pad(pod.state, kState) + Pad(pod.name, columns.name) +
                     Pad(FormatAge(pod.age), kAge) + Pad(pod.slice, columns.slice);
  if (pod.state == "pending") {
    if (pod.starts_in) line += fmt::format("starts in ~{}: ", FormatAge(*pod.starts_in));
    return line + pod.why;
  }
  return line + Pad(pod.where, columns.where) + Pad(Percent(pod.utilization), kUse) +
         (pod.memory ? Gib(*pod.memory) + "G" : "-");
}

std::string PodTitle(const PodColumns& columns) {
  return Pad("STATE", kState) + Pad("POD", columns.name) + Pad("AGE", kAge) +
         Pad("SLICE", columns.slice) + Pad("WHERE", columns.where) + Pad("UTIL", kUse) + "MEMORY";
}

}  // namespace

std::string RenderTop(const TopRows& rows, ViewSize size, bool colour, std::string_view note) {
  constexpr size_t kFixed = 5 + 2;  // header, titles, blank lines; lines that count omitted rows
  const size_t room = std::max<size_t>(2, Minus(size.lines, kFixed));
  const size_t gpus = std::min(rows.gpus.size(), std::max(room / 2, Minus(room, rows.pods.size())));
  const size_t pods = std::min(rows.pods.size(), room - gpus);
  Lines lines(size, colour);
  lines.Add(Header(rows), kBold);
  lines.Add(note, kDim);
  const size_t label = std::min(kNode, size.columns / 3);
  const size_t mode = ModeWidth(rows, size.columns);
  lines.Add(Pad("NODE", label) + Pad("UTIL", kUse) + Pad("MEMORY", kMemory) + Pad("MODE", mode) +
                "SLICES",
            kDim);
  for (size_t i = 0; i < gpus; ++i) lines.Put(GpuLine(rows.gpus[i], size.columns, mode, colour));
  lines.More(rows.gpus.size(), gpus, "GPUs");
  lines.Add("");
  const PodColumns columns = ColumnsFor(size.columns);
  lines.Add(PodTitle(columns), kDim);
  if (rows.pods.empty()) lines.Add("no pod is running or pending", kDim);
  for (size_t i = 0; i < pods; ++i) {
    const bool waits = rows.pods[i].state == "pending";
    lines.Add(PodLine(rows.pods[i], columns), waits ? kWaits : std::string_view());
  }
  lines.More(rows.pods.size(), pods, "pods");
  return lines.Take();
}

}  // namespace nos::cmd
