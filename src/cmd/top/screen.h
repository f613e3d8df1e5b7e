// The interactive side of `nos top`: views, selection, filter, details and help. Pure: the caller
// has the terminal and the server.
//
//   TopScreen screen(TopSort::kState);
//   while (screen.Press(keys.Wait(pause), data)) Draw(screen.Render(data, size, colour, note));
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cmd/stories/reading.h"
#include "cmd/top/lines.h"
#include "cmd/top/model.h"

namespace nos::cmd {

enum class TopView { kOverview, kGpus, kPods, kWaiting, kDecisions, kQuotas };

// Input of the views. Decisions and quotas are empty until the caller has read them.
struct TopData {
  TopRows rows;
  std::vector<StoryRow> decisions;  // newest first
  Json quotas;                      // as in GET quotas
  int64_t at = 0;                   // server time, milliseconds since the epoch
};

class TopScreen {
 public:
  explicit TopScreen(TopSort sort) : sort_(sort) {}

  // Handles a key (terminal.h); kNoKey is none. False if the user quits.
  bool Press(int key, const TopData& data);
  // Lines as by RenderTop. `note`: a problem, shown in place of the list of views.
  std::string Render(const TopData& data, ViewSize size, bool colour, std::string_view note) const;

  TopView view() const { return view_; }
  TopSort sort() const { return sort_; }

 private:
  // A row of the view in force, in the order shown.
  struct Row {
    enum class Of { kGpu, kPod, kDecision, kQuota } of;
    size_t index;
  };
  std::vector<Row> RowsOf(const TopData& data) const;
  bool Matches(std::string_view text) const;
  TopData Filtered(const TopData& data) const;
  void Move(int key, size_t rows);
  bool PressFilter(int key);
  void SwitchTo(TopView view);
  void AddList(const TopData& data, Lines& lines) const;
  void AddTexts(const TopData& data, Lines& lines) const;
  std::string ViewsLine() const;

  TopView view_ = TopView::kOverview;
  TopSort sort_;
  std::string filter_;
  bool filtering_ = false;  // the filter is being typed
  bool help_ = false, details_ = false;
  size_t selected_ = 0;  // of RowsOf
  bool marked_ = false;  // the selection is shown: the user has moved it
};

}  // namespace nos::cmd
