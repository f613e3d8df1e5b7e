// Frame of `nos top`: GPUs as rows of slots, pods below them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.h"
#include "cmd/top/lines.h"

namespace nos::cmd {
namespace {

constexpr Duration kSilent = std::chrono::seconds(30);
constexpr size_t kNode = 22, kUse = 6, kMemory = 10, kWidestCell = 9;
constexpr size_t kState = 11, kName = 30, kSlice = 14, kWhere = 20, kAge = 8;

size_t Minus(size_t room, size_t taken) { return room - std::min(room, taken); }

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

// "GPUs 9 to 16 of 320", if not all are shown.
void AddPosition(const Page& page, size_t all, std::string_view what, Lines& lines) {
  if (page.count == all) return;
  lines.Add(fmt::format("… {} {} to {} of {}", what, page.first + 1, page.first + page.count, all),
            kDim);
}

}  // namespace

void Lines::Add(std::string_view text, std::string_view how) {
  const std::string line = Truncate(Printable(std::string(text)), size_.columns);
  Put(colour_ && !how.empty() ? fmt::format("{}{}{}", how, line, kReset) : line);
}

Page PageOf(size_t all, size_t room, std::optional<size_t> selected) {
  if (all <= room || room == 0) return {0, std::min(all, room)};
  const size_t page = std::max<size_t>(1, room - 1);  // one line says which rows these are
  const size_t first = std::min(selected.value_or(0), all - 1) / page * page;
  return {first, std::min(page, all - first)};
}

std::string Pad(const std::string& text, size_t width) {
  std::string out = Truncate(Printable(text), Minus(width, 1));
  out.append(Minus(width, DisplayWidth(out)), ' ');
  return out;
}

std::string Percent(std::optional<double> share) {
  return share ? fmt::format("{:.0f} %", *share * 100) : "-";
}

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

std::string GpuTitle(const TopRows& rows, size_t columns) {
  return Pad("NODE", std::min(kNode, columns / 3)) + Pad("UTIL", kUse) + Pad("MEMORY", kMemory) +
         Pad("MODE", ModeWidth(rows, columns)) + "SLICES";
}

std::string PodTitle(size_t columns) {
  const PodColumns widths = ColumnsFor(columns);
  return Pad("STATE", kState) + Pad("POD", widths.name) + Pad("AGE", kAge) +
         Pad("SLICE", widths.slice) + Pad("WHERE", widths.where) + Pad("UTIL", kUse) + "MEMORY";
}

void AddGpus(const TopRows& rows, size_t room, std::optional<size_t> selected, Lines& lines) {
  const size_t mode = ModeWidth(rows, lines.columns());
  const Page page = PageOf(rows.gpus.size(), room, selected);
  for (size_t i = page.first; i < page.first + page.count; ++i) {
    if (selected == i) {  // its own colours would end the mark
      lines.Add(GpuLine(rows.gpus[i], lines.columns(), mode, false), kSelected);
    } else {
      lines.Put(GpuLine(rows.gpus[i], lines.columns(), mode, lines.colour()));
    }
  }
  AddPosition(page, rows.gpus.size(), "GPUs", lines);
}

void AddPods(const std::vector<TopPod>& pods, size_t room, std::optional<size_t> selected,
             Lines& lines) {
  const PodColumns columns = ColumnsFor(lines.columns());
  const Page page = PageOf(pods.size(), room, selected);
  for (size_t i = page.first; i < page.first + page.count; ++i) {
    const std::string_view how = selected == i                ? kSelected
                                 : pods[i].state == "pending" ? kPending
                                                              : std::string_view();
    lines.Add(PodLine(pods[i], columns), how);
  }
  AddPosition(page, pods.size(), "pods", lines);
}

std::string RenderTop(const TopRows& rows, ViewSize size, bool colour, std::string_view note,
                      const TopCursor& cursor) {
  constexpr size_t kFixed = 5;  // header, note, titles, blank line
  const size_t room = std::max<size_t>(2, Minus(size.lines, kFixed));
  const size_t gpus = std::min(rows.gpus.size(), std::max(room / 2, Minus(room, rows.pods.size())));
  Lines lines(size, colour);
  lines.Add(Header(rows), kBold);
  lines.Add(note, kDim);
  lines.Add(GpuTitle(rows, size.columns), kDim);
  AddGpus(rows, gpus, cursor.gpu, lines);
  lines.Add("");
  lines.Add(PodTitle(size.columns), kDim);
  if (rows.pods.empty()) lines.Add("no pod is running or pending", kDim);
  AddPods(rows.pods, room - gpus, cursor.pod, lines);
  return lines.Take();
}

}  // namespace nos::cmd
