#include "cmd/top/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/table.h"
#include "base/text.h"
#include "cmd/terminal.h"

namespace nos::cmd {
namespace {

constexpr std::array<std::string_view, 6> kViews = {"overview", "GPUs",      "pods",
                                                    "waiting",  "decisions", "quotas"};
constexpr size_t kPageOfKeys = 10;  // rows that Page Up and Page Down move by

std::string Lower(std::string_view text) { return ToLower(std::string(text)); }

// Lines of at most `width` characters, broken at blanks; a longer word is broken anywhere.
std::vector<std::string> Wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  for (const std::string_view word : Split(text, ' ')) {
    std::string& last = lines.back();
    if (!last.empty() && DisplayWidth(last) + 1 + DisplayWidth(word) > width) {
      lines.emplace_back(word);
    } else {
      last += (last.empty() ? "" : " ") + std::string(word);
    }
  }
  return lines;
}

std::string AgoText(int64_t at, int64_t now) {
  return FormatAge(std::chrono::milliseconds(std::max<int64_t>(0, now - at)));
}

double AmountOf(const Json& amounts, std::string_view key) {
  const Json* found = Find(amounts, key);
  return found != nullptr && found->is_number() ? found->to_number<double>() : 0;
}

const JsonArray& QuotasIn(const TopData& data) {
  static const JsonArray none;
  const Json* quotas = Find(data.quotas, "quotas");
  return quotas != nullptr && quotas->is_array() ? quotas->get_array() : none;
}

std::string QuotaName(const Json& quota) {
  return fmt::format("{}/{}", FindString(quota, "namespace"), FindString(quota, "name"));
}

// "gpu-memory 60 of 40, borrows 20", for each resource.
std::vector<std::string> QuotaAmounts(const Json& quota) {
  std::vector<std::string> texts;
  const Json* resources = Find(quota, "resources");
  if (resources == nullptr || !resources->is_object()) return texts;
  for (const auto& [key, amounts] : resources->get_object()) {
    std::string name(key);
    name.erase(0, name.find('/') == std::string::npos ? 0 : name.find('/') + 1);
    std::string text = fmt::format("{}: uses {:g}, guaranteed {:g}", name,
                                   AmountOf(amounts, "used"), AmountOf(amounts, "guaranteed"));
    if (const double borrowed = AmountOf(amounts, "borrowed"); borrowed > 0)
      text += fmt::format(", borrows {:g}", borrowed);
    if (const double lent = AmountOf(amounts, "lent"); lent > 0)
      text += fmt::format(", lends {:g}", lent);
    if (Find(amounts, "max") != nullptr)
      text += fmt::format(", max {:g}", AmountOf(amounts, "max"));
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string TextOf(const TopPod& pod) {
  return fmt::format("{} {} {} {} {}", pod.name, pod.state, pod.slice, pod.where, pod.why);
}

std::string TextOf(const TopGpu& gpu) {
  std::string text = fmt::format("{} gpu {} {} {} {}", gpu.row.node, gpu.row.index, gpu.row.model,
                                 gpu.row.sharing_mode, gpu.health);
  for (const SlotSpan& span : gpu.row.spans) text += " " + span.profile + " " + span.pod;
  return text;
}

std::string TextOf(const StoryRow& story) {
  return fmt::format("{} {} {}", story.type, story.outcome, story.sentence);
}

std::string TextOf(const Json& quota) {
  return QuotaName(quota) + "  " + Join(QuotaAmounts(quota), "; ");
}

void AddField(std::string_view name, const std::string& value, std::vector<std::string>& lines) {
  if (!value.empty()) lines.push_back(fmt::format("{:<14}{}", name, value));
}

std::string MebibytesText(std::optional<double> mebibytes) {
  return mebibytes ? fmt::format("{:.0f} MiB", *mebibytes) : "not measured";
}

std::string ShareText(std::optional<double> share) {
  return share ? Percent(share) : "not measured";
}

std::vector<std::string> DetailsOf(const TopGpu& gpu) {
  std::vector<std::string> lines;
  AddField("GPU", fmt::format("{} of node {}", gpu.row.index, gpu.row.node), lines);
  AddField("model", gpu.row.model, lines);
  AddField("mode", gpu.row.sharing_mode, lines);
  AddField("health", gpu.health.empty() ? "healthy" : gpu.health, lines);
  AddField("utilization", ShareText(gpu.utilization), lines);
  AddField("memory used", MebibytesText(gpu.memory), lines);
  AddField("memory", gpu.capacity ? MebibytesText(gpu.capacity) : "", lines);
  lines.emplace_back();
  if (gpu.row.spans.empty()) lines.emplace_back("no slice exists");
  for (const SlotSpan& span : gpu.row.spans) {
    lines.push_back(fmt::format("slots {} to {}: {} {}", span.start, span.start + span.size - 1,
                                span.profile.empty() ? "whole GPU" : span.profile,
                                span.pod.empty() ? "free" : "used by " + span.pod));
  }
  return lines;
}

std::vector<std::string> DetailsOf(const TopPod& pod) {
  std::vector<std::string> lines;
  AddField("pod", pod.name, lines);
  AddField("state", fmt::format("{} for {}", pod.state, FormatAge(pod.age)), lines);
  AddField("requests", pod.slice, lines);
  AddField("where", pod.where, lines);
  if (pod.state != "pending") {
    AddField("utilization", ShareText(pod.utilization), lines);
    AddField("memory used", MebibytesText(pod.memory), lines);
  }
  if (pod.starts_in) AddField("starts", "in about " + FormatAge(*pod.starts_in), lines);
  if (!pod.why.empty()) {
    lines.emplace_back();
    lines.push_back(pod.why);
  }
  lines.emplace_back();
  lines.push_back("nos explain " + pod.name + "    says what would help");
  return lines;
}

std::vector<std::string> DetailsOf(const StoryRow& story, int64_t now) {
  constexpr size_t kShown = 20;  // ids
  std::vector<std::string> lines;
  AddField("decision", fmt::format("{}, {}", story.type, story.outcome), lines);
  AddField("time",
           fmt::format("{} ({} ago)", FormatTime(Time(std::chrono::milliseconds(story.at))),
                       AgoText(story.at, now)),
           lines);
  if (story.took_ms >= 0)
    AddField("took", fmt::format("{:.1f} s", static_cast<double>(story.took_ms) / 1000), lines);
  for (size_t i = 0; i < std::min(kShown, story.decisions.size()); ++i)
    AddField("id", story.decisions[i], lines);
  if (story.decisions.size() > kShown)
    AddField("id", fmt::format("and {} more", story.decisions.size() - kShown), lines);
  lines.emplace_back();
  lines.push_back(story.sentence);
  lines.push_back("Why: " + story.reason);
  return lines;
}

std::vector<std::string> DetailsOf(const Json& quota) {
  std::vector<std::string> lines;
  AddField("quota", QuotaName(quota), lines);
  AddField("kind", std::string(FindString(quota, "type")), lines);
  lines.emplace_back();
  for (std::string& text : QuotaAmounts(quota)) lines.push_back(std::move(text));
  return lines;
}

std::vector<std::string> HelpLines() {
  return {"1 to 6, Tab     choose a view: overview, GPUs, pods, waiting, decisions, quotas",
          "arrows, j, k    select a row; Page Up and Down, Home and End work, too",
          "Enter           details of the selected row; Esc goes back",
          "/               show only rows that contain a text; Esc ends it",
          "s n u m a       sort by state, name, utilization, memory or age",
          "?               this help",
          "q               quit"};
}

}  // namespace

bool TopScreen::Matches(std::string_view text) const {
  return filter_.empty() || Lower(text).find(Lower(filter_)) != std::string::npos;
}

TopData TopScreen::Filtered(const TopData& data) const {
  TopData shown = data;
  const auto hides = [&](const auto& row) { return !Matches(TextOf(row)); };
  std::erase_if(shown.rows.gpus, hides);
  std::erase_if(shown.rows.pods, hides);
  std::erase_if(shown.decisions, hides);
  if (view_ == TopView::kWaiting) {
    std::erase_if(shown.rows.pods, [](const TopPod& pod) { return pod.state != "pending"; });
  }
  JsonArray quotas;
  for (const Json& quota : QuotasIn(data)) {
    if (Matches(TextOf(quota))) quotas.push_back(quota);
  }
  shown.quotas = JsonObject{{"quotas", std::move(quotas)}};
  return shown;
}

std::vector<TopScreen::Row> TopScreen::RowsOf(const TopData& data) const {
  std::vector<Row> rows;
  const auto add = [&](Row::Of of, size_t count) {
    for (size_t i = 0; i < count; ++i) rows.push_back({of, i});
  };
  const bool all = view_ == TopView::kOverview;
  if (all || view_ == TopView::kGpus) add(Row::Of::kGpu, data.rows.gpus.size());
  if (all || view_ == TopView::kPods || view_ == TopView::kWaiting) {
    add(Row::Of::kPod, data.rows.pods.size());
  }
  if (view_ == TopView::kDecisions) add(Row::Of::kDecision, data.decisions.size());
  if (view_ == TopView::kQuotas) add(Row::Of::kQuota, QuotasIn(data).size());
  return rows;
}

void TopScreen::SwitchTo(TopView view) {
  view_ = view;
  selected_ = 0;
  marked_ = details_ = false;
}

void TopScreen::Move(int key, size_t rows) {
  if (rows == 0) return;
  const size_t before = std::min(selected_, rows - 1);
  size_t after = before;
  if (key == kDown || key == 'j') after = marked_ ? before + 1 : before;
  if (key == kUp || key == 'k') after = before - std::min<size_t>(before, 1);
  if (key == kPageDown) after = before + kPageOfKeys;
  if (key == kPageUp) after = before - std::min(before, kPageOfKeys);
  if (key == kHome || key == 'g') after = 0;
  if (key == kEnd || key == 'G') after = rows - 1;
  selected_ = std::min(after, rows - 1);
  marked_ = true;
}

bool TopScreen::PressFilter(int key) {
  constexpr size_t kMaxFilter = 60;
  constexpr int kDelete = 127, kBackspace = 8;
  if (key == '\r' || key == '\n') {
    filtering_ = false;
  } else if (key == kEscape) {
    filtering_ = false;
    filter_.clear();
  } else if (key == kDelete || key == kBackspace) {
    if (!filter_.empty()) filter_.pop_back();
  } else if (key >= ' ' && key < kDelete && filter_.size() < kMaxFilter) {
    filter_ += static_cast<char>(key);
  }
  selected_ = 0;
  return true;
}

bool TopScreen::Press(int key, const TopData& data) {
  if (key == kNoKey) return true;
  if (filtering_) return PressFilter(key);
  if (key == 'q' || key == 'Q') return false;
  if (help_ || details_) {
    const bool back = key == kEscape || key == '?' || key == '\r' || key == '\n';
    if (back) help_ = details_ = false;
    if (back || help_) return true;
  }
  constexpr int kViewCount = static_cast<int>(kViews.size());
  const int view = static_cast<int>(view_);
  if (key >= '1' && key < '1' + kViewCount) SwitchTo(static_cast<TopView>(key - '1'));
  if (key == '\t') SwitchTo(static_cast<TopView>((view + 1) % kViewCount));
  if (key == kBackTab) SwitchTo(static_cast<TopView>((view + kViewCount - 1) % kViewCount));
  if (key == '?') help_ = true;
  if (key == '/') {
    filtering_ = true;
    filter_.clear();
  }
  if (key == kEscape) filter_.clear();
  const size_t rows = RowsOf(Filtered(data)).size();
  if (key == '\r' || key == '\n') details_ = rows > 0;
  if (key >= kUp && key <= kEnd) Move(key, rows);
  if (key == 'j' || key == 'k' || key == 'g' || key == 'G') Move(key, rows);
  constexpr std::array<std::pair<int, TopSort>, 5> kSorts = {{{'s', TopSort::kState},
                                                              {'n', TopSort::kName},
                                                              {'u', TopSort::kUtilization},
                                                              {'m', TopSort::kMemory},
                                                              {'a', TopSort::kAge}}};
  for (const auto& [letter, sort] : kSorts) {
    if (key == letter) sort_ = sort;
  }
  return true;
}

std::string TopScreen::ViewsLine() const {
  if (filtering_) return "/" + filter_ + "_   Enter keeps the filter, Esc ends it";
  std::string text = filter_.empty() ? "" : "only rows with '" + filter_ + "' (Esc: all)   ";
  for (size_t i = 0; i < kViews.size(); ++i) {
    const bool in_force = static_cast<size_t>(view_) == i;
    text += fmt::format("{}{} {}{}  ", in_force ? "[" : "", i + 1, kViews[i], in_force ? "]" : "");
  }
  return text + " ? help  q quits";
}

void TopScreen::AddTexts(const TopData& data, Lines& lines) const {
  const bool decisions = view_ == TopView::kDecisions;
  lines.Add(decisions ? Pad("AGE", 8) + Pad("DECISION", 12) + "WHAT" : "QUOTA", kDim);
  const size_t all = decisions ? data.decisions.size() : QuotasIn(data).size();
  if (all == 0) lines.Add(decisions ? "no decision in the last day" : "no elastic quota", kDim);
  const Page page = PageOf(all, lines.left(), selected_);
  for (size_t i = page.first; i < page.first + page.count; ++i) {
    std::string text;
    if (decisions) {
      const StoryRow& story = data.decisions[i];
      text = Pad(AgoText(story.at, data.at), 8) + Pad(story.type, 12) + story.sentence;
    } else {
      text = TextOf(QuotasIn(data)[i]);
    }
    lines.Add(text, marked_ && i == selected_ ? kSelected : std::string_view());
  }
  if (page.count < all) {
    lines.Add(fmt::format("… {} to {} of {}", page.first + 1, page.first + page.count, all), kDim);
  }
}

void TopScreen::AddList(const TopData& data, Lines& lines) const {
  const std::optional<size_t> selected = marked_ ? std::optional(selected_) : std::nullopt;
  if (view_ == TopView::kGpus) {
    lines.Add(GpuTitle(data.rows, lines.columns()), kDim);
    AddGpus(data.rows, lines.left(), selected, lines);
  } else if (view_ == TopView::kPods || view_ == TopView::kWaiting) {
    lines.Add(PodTitle(lines.columns()), kDim);
    if (data.rows.pods.empty()) lines.Add("no pod", kDim);
    AddPods(data.rows.pods, lines.left(), selected, lines);
  } else {
    AddTexts(data, lines);
  }
}

std::string TopScreen::Render(const TopData& data, ViewSize size, bool colour,
                              std::string_view note) const {
  const TopData shown = Filtered(data);
  const std::vector<Row> rows = RowsOf(shown);
  const size_t at = rows.empty() ? 0 : std::min(selected_, rows.size() - 1);
  const std::string second = note.empty() ? ViewsLine() : std::string(note);
  if (view_ == TopView::kOverview && !help_ && !(details_ && !rows.empty())) {
    TopCursor cursor;
    if (marked_ && !rows.empty()) {
      (rows[at].of == Row::Of::kGpu ? cursor.gpu : cursor.pod) = rows[at].index;
    }
    return RenderTop(shown.rows, size, colour, second, cursor);
  }
  Lines lines(size, colour);
  lines.Add(Header(data.rows), kBold);
  lines.Add(second, kDim);
  std::vector<std::string> texts;
  if (help_) {
    texts = HelpLines();
  } else if (details_ && !rows.empty()) {
    const size_t index = rows[at].index;
    switch (rows[at].of) {
      case Row::Of::kGpu:
        texts = DetailsOf(shown.rows.gpus[index]);
        break;
      case Row::Of::kPod:
        texts = DetailsOf(shown.rows.pods[index]);
        break;
      case Row::Of::kDecision:
        texts = DetailsOf(shown.decisions[index], data.at);
        break;
      case Row::Of::kQuota:
        texts = DetailsOf(QuotasIn(shown)[index]);
        break;
    }
  } else {
    AddList(shown, lines);
    return lines.Take();
  }
  lines.Add("");
  for (const std::string& text : texts) {
    for (const std::string& line : Wrapped(text, size.columns)) lines.Add(line);
  }
  lines.Add("");
  lines.Add("Esc goes back", kDim);
  return lines.Take();
}

}  // namespace nos::cmd
