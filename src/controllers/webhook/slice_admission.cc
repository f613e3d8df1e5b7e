#include "controllers/slice_admission.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "cluster/gpu_requirements.h"
#include "cluster/new_pod.h"
#include "codec/cursor.h"
#include "controllers/pending/assumed.h"
#include "planning/planner.h"
#include "planning/slice_choice.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {
namespace {

// Maximum age of the snapshot, so that a burst of pods does not rebuild it for each pod.
constexpr Duration kOldest = std::chrono::seconds(1);
// A pod that is not in the caches by then was not created.
constexpr Duration kMaxAssumedTime = std::chrono::seconds(10);
// Together less than the timeout of API servers, which is some seconds.
constexpr Duration kMaxLook = std::chrono::seconds(1), kMaxChoice = std::chrono::seconds(2);
// Limit of pending pods that are considered, in the order of their names.
constexpr size_t kMaxWaiting = 2000;
constexpr size_t kMaxResources = 64 << 10;  // bytes of a container's resources
// Concurrent requests: fewer than threads, in total and of one namespace.
constexpr size_t kMaxAsking = 12, kMaxAskingOfOne = 4;
constexpr size_t kMaxAssumed = 100;  // namespaces
constexpr size_t kMaxReason = 1000;  // bytes
constexpr size_t kMaxFull = 1000;    // kinds of pods that are known not to fit

std::string Escaped(std::string_view key) {  // RFC 6901
  std::string text;
  for (const char c : key) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

// spec.containers[container].resources as raw JSON. Empty: it is missing.
std::string ResourcesText(const std::string& object, size_t container) {
  std::string text;
  const auto in = [](Cursor& value, std::string_view wanted, auto visit) {
    if (value.kind() != Cursor::Kind::kObject) return;
    value.Members([&](std::string_view key, Cursor& member) {
      if (key == wanted) visit(member);
    });
  };
  const Status read = ReadJson(object, [&](Cursor& root) {
    in(root, "spec", [&](Cursor& spec) {
      in(spec, "containers", [&](Cursor& containers) {
        if (containers.kind() != Cursor::Kind::kArray) return;
        size_t index = 0;
        containers.Elements([&](Cursor& element) {
          if (index++ != container) return;
          in(element, "resources", [&](Cursor& resources) { text = resources.Raw(); });
        });
      });
    });
  });
  return read.ok() && text != "null" ? text : "";
}

Result<JsonArray> PatchFor(const std::string& object, size_t container, const std::string& resource,
                           const std::string& reason) {
  const std::string text = ResourcesText(object, container);
  if (text.size() > kMaxResources) return Invalid("its container's resources are too long");
  JsonObject resources;
  if (!text.empty()) {
    NOS_ASSIGN(Json known, ParseJson(text));
    if (known.is_object()) resources = std::move(known.as_object());
  }
  for (const char* kind : {"limits", "requests"}) {
    Json& list = resources[kind];
    if (!list.is_object()) list = JsonObject();
    list.as_object()[resource] = "1";
  }
  const auto annotation = [](std::string_view key, const std::string& value) {
    return JsonObject{
        {"op", "add"}, {"path", "/metadata/annotations/" + Escaped(key)}, {"value", value}};
  };
  return JsonArray{JsonObject{{"op", "add"},
                              {"path", fmt::format("/spec/containers/{}/resources", container)},
                              {"value", std::move(resources)}},
                   annotation(cluster::kChosenSlice, resource),
                   annotation(cluster::kChosenSliceReason, reason)};
}

}  // namespace

SliceAdmission::SliceAdmission(const gpu::Catalogue& catalogue, const Clock& clock,
                               std::function<Cluster()> look, SliceAdmissionOptions options)
    : catalogue_(catalogue),
      clock_(clock),
      configuration_(scheduling::DefaultConfiguration({.simulates = true})),
      look_(std::move(look)),
      options_(options),
      turns_(kMaxAsking, kMaxAskingOfOne) {}

Status SliceAdmission::Ready() const {
  const Cluster now = look_();
  return now.nodes != nullptr && now.pods != nullptr
             ? Status::Ok()
             : Status(Code::kUnavailable, "the cluster has not been read yet");
}

// Builds the snapshot, with pending pods placed where a plan would place them.
void SliceAdmission::LookAgain() {
  const Time now = clock_.Now();
  if (seen_.nodes != nullptr && now >= looked_ && now - looked_ < kOldest) return;
  const Cluster cluster = look_();
  const bool same = cluster.nodes == seen_.nodes && cluster.pods == seen_.pods;
  if (same && (assumed_.empty() || now - looked_ < kMaxAssumedTime)) return;
  seen_ = cluster;
  assumed_.clear();
  DeadlineIn(kMaxLook);
  state_ = {cluster::ClusterSnapshot::Build(*seen_.nodes, *seen_.pods, catalogue_)};
  cluster::ClusterSnapshot& snapshot = state_.snapshot;
  const bool whole = GivesWhole(snapshot);
  std::vector<std::shared_ptr<const cluster::Pod>> waiting;
  for (const auto& pod : *seen_.pods) {
    if (waiting.size() == kMaxWaiting) break;
    const bool waits =
        pod->node_name.empty() && !pod->Finished() && scheduling::IsSchedulable(*pod);
    if (waits && AsksForSlices(*pod, whole)) waiting.push_back(pod);
  }
  looked_ = clock_.Now();
  if (waiting.empty()) return;
  planning::PlanOptions options;
  options.now = now;
  options.out_of_time = [this] { return OutOfTime(); };
  const planning::Plan plan =
      planning::MakePlan(snapshot, waiting, *configuration_.profiles.front().framework, options);
  for (const planning::PodOutcome& outcome : plan.pods) {
    if (!outcome.placed) continue;
    cluster::Pod pod = *outcome.pod;
    for (const planning::AssignedDevice& device : outcome.devices) {
      pod.promised.push_back({device.gpu, device.placement, device.model});
    }
    (void)snapshot.Bind(std::make_shared<const cluster::Pod>(std::move(pod)), outcome.node);
  }
  looked_ = clock_.Now();
}

std::string SliceAdmission::GroupOf(const std::string& ns) {
  const Time now = clock_.Now();
  const std::scoped_lock lock(mutex_);
  if (!listed_ || now < *listed_ || now - *listed_ >= kOldest) {
    namespaces_.clear();
    listed_ = now;
    if (const Objects<cluster::Pod> pods = look_().pods) {
      for (const auto& pod : *pods) {
        if (!namespaces_.contains(pod->meta.ns)) namespaces_.insert(pod->meta.ns);
      }
    }
  }
  return namespaces_.contains(ns) ? ns : "";
}

SliceAdmission::ClusterState& SliceAdmission::StateFor(const std::string& ns) {
  const auto own = assumed_.find(ns);
  return own == assumed_.end() ? state_ : own->second;
}

AdmissionAnswer SliceAdmission::Review(std::string_view body) {
  if (const Status ready = Ready(); !ready.ok()) return {503, ready.message() + "\n", false};
  const auto question = ReadAdmissionReview(body);
  if (!question.ok()) return {400, question.status().message() + "\n", false};
  // Leaves threads free for the other webhooks, and places for other namespaces.
  const auto turn = turns_.Take(GroupOf(question->ns));
  if (turn == nullptr) return {503, "too many pods ask by need: try again\n", false};
  const std::optional<AdmissionVerdict> verdict = Choose(*question);
  if (!verdict) return {503, "there was no time to choose a slice: try again\n", false};
  return AnswerTo(*question, *verdict);
}

std::optional<AdmissionVerdict> SliceAdmission::Choose(const AdmissionQuestion& question) {
  if (question.kind != "Pod" || question.operation != "CREATE" || question.object.empty()) {
    return AdmissionVerdict{};
  }
  cluster::Pod pod;
  if (const Status read = cluster::ReadNewPod(question.object, pod); !read.ok()) {
    return AdmissionVerdict{.refusal = read.message()};
  }
  if (pod.meta.name.empty()) pod.meta.name = question.uid;  // the API server will generate one
  if (!question.ns.empty()) pod.meta.ns = question.ns;
  LookAgain();
  ClusterState& state = StateFor(question.ns);
  DeadlineIn(kMaxChoice);
  planning::PlanOptions options;
  options.now = clock_.Now();
  options.out_of_time = [this] { return OutOfTime(); };
  const planning::NeedAnswer answer =
      planning::AnswerNeed(pod, state.snapshot, *configuration_.profiles.front().framework, options,
                           &state.full, options_.shares_need_host_ipc);
  if (state.full.size() > kMaxFull) state.full.clear();
  if (answer.unknown) return std::nullopt;
  AdmissionVerdict verdict{.refusal = answer.refusal};
  if (!answer.warning.empty()) verdict.warnings.push_back(answer.warning);
  if (!answer.choice) return verdict;
  const std::string reason = Shortened(answer.choice->Reason(), kMaxReason);
  auto patch = PatchFor(question.object, answer.container, answer.choice->resource, reason);
  if (!patch.ok()) return AdmissionVerdict{.refusal = patch.status().message()};
  if (!answer.choice->node.empty() && !question.dry_run) {
    if (assumed_.size() >= kMaxAssumed && !assumed_.contains(question.ns)) assumed_.clear();
    (void)assumed_.try_emplace(question.ns, state_)
        .first->second.snapshot.Bind(
            std::make_shared<const cluster::Pod>(planning::WithSlice(std::move(pod), answer)),
            answer.choice->node);
  }
  verdict.warnings.push_back(fmt::format("nos: {}: {}", answer.choice->resource, reason));
  verdict.patch = std::move(patch).value();
  return verdict;
}

}  // namespace nos::controllers
