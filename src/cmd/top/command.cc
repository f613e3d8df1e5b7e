// nos top: current GPUs, slices and pods, updated by the telemetry server's event stream.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/back_off.h"
#include "base/table.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/query/telemetry_client.h"
#include "cmd/stories/reading.h"
#include "cmd/terminal.h"
#include "cmd/top/model.h"
#include "cmd/top/screen.h"

namespace nos::cmd {
namespace {

constexpr int kMaxPages = 50;
constexpr const char* kPageSize = "1000";
constexpr BackOff kPauses{std::chrono::seconds(1), std::chrono::seconds(30)};
constexpr Duration kForever = std::chrono::hours(24);
constexpr int64_t kDecisionsShown = 200;
constexpr int64_t kFarAway = 9'999'999'999'999;  // milliseconds since the epoch
constexpr std::chrono::milliseconds kDecisionsSince = std::chrono::hours(24);

struct TopFlags {
  TelemetryFlags telemetry;
  TopOptions options;
  std::string output = "text", sort = "state";
  bool once = false;
};

// `note`: a hint for the user.
Status Load(TelemetryClient& client, const std::string& ns, TopModel& model, std::string& note) {
  NOS_ASSIGN(const Json session, client.Get("session", {{"namespace", ns}}));
  note = UnaskedNote(session, ns);
  auto overview = client.Get("overview");
  const bool hidden = !overview.ok() && overview.status().code() == Code::kPermission;
  if (!overview.ok() && !hidden) return overview.status();
  NOS_ASSIGN(const Json gpus, client.Get("gpus", {{"namespace", ns}}));
  std::vector<Json> pages;
  std::string after;
  do {
    NOS_ASSIGN(Json page, client.Get("workloads",
                                     {{"namespace", ns}, {"limit", kPageSize}, {"after", after}}));
    after = FindString(page, "next");
    pages.push_back(std::move(page));
  } while (!after.empty() && pages.size() < kMaxPages);
  model.Load(gpus, pages, hidden ? nullptr : &*overview);
  return Status::Ok();
}

class LiveTop {
 public:
  LiveTop(TelemetryClient& client, TopModel& model, const TopOptions& options, bool colours)
      : client_(client), model_(model), ns_(options.ns), colours_(colours), screen_(options.sort) {}

  // Runs until the user quits.
  void Run() {
    int failures = 0;  // in a row, to load the state
    while (!ended_) {
      if (Follow()) failures = 0;
      const Duration pause = kPauses.After(++failures);
      const auto until = SteadyClock().Now() + pause;
      for (Duration left = pause; !ended_ && left > Duration();
           left = until - SteadyClock().Now()) {
        Draw();
        Wait(left);
      }
    }
  }

 private:
  // One connection: loads the full state, then applies events. Returns true if the state was
  // loaded.
  bool Follow() {
    const auto stream = client_.Stream([this] { keys_.Wake(); });
    bool loaded = false;
    while (!ended_) {
      while (auto event = stream->Next()) {
        const auto data = ParseJson(event->data);
        if (!data.ok()) continue;
        const bool goes_on = model_.Apply(event->name, *data);
        if (event->name == "quotas") quotas_ = *data;
        if (event->name == "decision") decisions_read_ = false;
        if (loaded && goes_on) continue;
        // Events from the first one on are applied again to the new state.
        const Status read = Load(client_, ns_, model_, note_);
        if (!read.ok()) note_ = read.message();
        decisions_read_ = quotas_read_ = false;
        if (!read.ok()) return false;
        loaded = true;
      }
      if (stream->Ended()) {
        const Status error = client_.Explain(stream->error());
        if (!error.ok()) note_ = error.message();
        if (error.ok() && !loaded) note_ = "the server closed the stream";
        return loaded;
      }
      Draw();
      Wait(kForever);
    }
    return true;
  }

  // Stories of the last day, newest first.
  Status ReadDecisions() {
    const TimeRange day{std::max<int64_t>(0, model_.at() - kDecisionsSince.count()), kFarAway};
    NOS_ASSIGN(const StoriesRead read, ReadStories(client_, day, ns_, kDecisionsShown));
    decisions_.clear();
    for (const Json& answer : read.answers) {
      for (StoryRow& story : StoryRows(answer)) decisions_.push_back(std::move(story));
    }
    return Status::Ok();
  }

  // Reads what only the view in force shows.
  void ReadForView() {
    Status read;
    if (screen_.view() == TopView::kDecisions && !std::exchange(decisions_read_, true)) {
      read = ReadDecisions();
    }
    if (screen_.view() == TopView::kQuotas && !std::exchange(quotas_read_, true)) {
      Query query;
      if (!ns_.empty()) query.emplace_back("namespace", ns_);
      auto quotas = client_.Get("quotas", query);
      if (quotas.ok()) quotas_ = std::move(*quotas);
      read = quotas.status();
    }
    if (!read.ok()) note_ = read.message();
  }

  TopData Data() const {
    return {RowsOf(model_, {ns_, screen_.sort()}), decisions_, quotas_, model_.at()};
  }

  void Draw() {
    ReadForView();
    terminal_.Draw(screen_.Render(Data(), TerminalSize(), colours_, note_));
  }

  void Wait(Duration at_most) {
    const int key = keys_.Wait(at_most);
    if (interrupt_.Requested() || !screen_.Press(key, Data())) ended_ = true;
  }

  TelemetryClient& client_;
  TopModel& model_;
  const std::string ns_;
  const bool colours_;
  std::string note_;  // a problem
  bool ended_ = false;
  bool decisions_read_ = false, quotas_read_ = false;
  std::vector<StoryRow> decisions_;
  Json quotas_;
  TopScreen screen_;
  Interrupt interrupt_{""};
  Keys keys_;
  FullScreen terminal_;
};

int Run(const TopFlags& flags) {
  auto client = TelemetryClient::For(flags.telemetry);
  if (!client.ok()) return Fail("nos top", client.status());
  TopModel model;
  std::string note;
  const Status read = Load(*client, flags.options.ns, model, note);
  if (!read.ok()) return Fail("nos top", read);
  const Display display = StdoutDisplay();
  const bool once = flags.once || flags.output == "json" || !display.screen;
  if (once && !note.empty()) std::cerr << note << "\n";
  if (flags.output == "json") {
    std::cout << WriteJsonPretty(TopJson(model, flags.options)) << "\n";
    return 0;
  }
  if (once) {
    std::cout << RenderTop(RowsOf(model, flags.options), {TableWidth(), kUncut}, display.colours,
                           "");
    return 0;
  }
  LiveTop(*client, model, flags.options, display.colours).Run();
  return 0;
}

}  // namespace

void AddTopCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand("top", "Watch current GPUs, slices and pods");
  auto flags = std::make_shared<TopFlags>();
  command->add_flag("--once", flags->once, "Print once and exit; the default without a terminal");
  command->add_option("-o,--output", flags->output, "Output format: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->option_text("FORMAT");
  command->add_option("-n,--namespace", flags->options.ns, "Show only pods of this namespace")
      ->option_text("NAME");
  command
      ->add_option("--sort", flags->sort, Join(TopSortNames(), ", ") + "; pending pods come first")
      ->check(CLI::IsMember(TopSortNames()))
      ->option_text("WHAT [state]");
  AddTelemetryFlags(*command, flags->telemetry);
  command->footer(
      "Examples:\n"
      "  nos sandbox                   and beside it:  nos top\n"
      "  nos top --once -n team-a --sort utilization\n"
      "  nos top --server https://nos-telemetry.example.com --ca-file ca.crt -o json");
  command->callback([&chosen, flags] {
    flags->options.sort = TopSortNamed(flags->sort).value_or(TopSort::kState);
    chosen.action = [flags] { return Run(*flags); };
  });
}

}  // namespace nos::cmd
