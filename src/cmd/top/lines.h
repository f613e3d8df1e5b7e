// Lines of `nos top`'s frames, and pages of lines.
#pragma once

#include <string>
#include <string_view>

#include "cmd/sandbox_view.h"
#include "cmd/top/model.h"

namespace nos::cmd {

// ANSI select-graphic-rendition sequences (ECMA-48).
inline constexpr std::string_view kReset = "\x1b[0m", kBold = "\x1b[1m", kDim = "\x1b[2m",
                                  kPending = "\x1b[33m", kSelected = "\x1b[7m";

// Collects lines of a frame and cuts them to its size.
class Lines {
 public:
  Lines(ViewSize size, bool colour) : size_(size), colour_(colour) {}
  void Add(std::string_view text, std::string_view how = "");
  // `line` is already coloured, truncated and printable.
  void Put(const std::string& line) {
    if (lines_++ < size_.lines) text_ += line + "\n";
  }
  size_t left() const { return size_.lines - std::min(size_.lines, lines_); }
  size_t columns() const { return size_.columns; }
  bool colour() const { return colour_; }
  std::string Take() { return std::move(text_); }

 private:
  const ViewSize size_;
  const bool colour_;
  size_t lines_ = 0;
  std::string text_;
};

// The rows [first, first + count) of `all`: the page of `room` rows that has the selected one.
struct Page {
  size_t first = 0, count = 0;
};
Page PageOf(size_t all, size_t room, std::optional<size_t> selected);

std::string Pad(const std::string& text, size_t width);
std::string Percent(std::optional<double> share);
std::string Header(const TopRows& rows);
std::string GpuTitle(const TopRows& rows, size_t columns);
std::string PodTitle(size_t columns);
// Lists of rows, one line each; the selected one is marked. The rows that have no room are counted
// in a last line, so that `room` lines are written at most.
void AddGpus(const TopRows& rows, size_t room, std::optional<size_t> selected, Lines& lines);
void AddPods(const std::vector<TopPod>& pods, size_t room, std::optional<size_t> selected,
             Lines& lines);

}  // namespace nos::cmd
