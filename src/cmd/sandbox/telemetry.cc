#include "cmd/sandbox/telemetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/millis.h"
#include "base/uuid.h"
#include "codec/gzip.h"
#include "telemetry/envelope.h"
#include "telemetry/envelope_writer.h"
#include "telemetryreporter/node_sample.h"

namespace nos::cmd {
namespace {

constexpr const char* kCluster = "sandbox";
constexpr Duration kMeasureEvery = std::chrono::seconds(10);
constexpr size_t kNodesAtOnce = 200;  // each node is measured less often beyond this
constexpr size_t kMaxBatches = 10'000;

// Round numbers, so that readers do not take them for an offer.
telemetryserver::PriceList ExamplePrices() {
  constexpr telemetryserver::Micros kUnit = telemetryserver::kMicrosPerUnit;
  return {"USD",
          "example prices of the sandbox, not those of any provider",
          {{.per_gpu_hour = 4 * kUnit, .model = "H100-80GB"},
           {.per_gpu_hour = 2 * kUnit, .model = "A100-80GB"},
           {.per_gpu_hour = 1 * kUnit, .model = "A100-40GB"},
           {.per_gpu_hour = 1 * kUnit}}};
}

reconcile::RunnerOptions WatchingQuotas() {
  reconcile::RunnerOptions options;
  options.watch_context = true;
  options.context_kinds = controllers::CollectorKinds();
  return options;
}

// Bounded, so that a runner that never becomes idle does not block the world.
void StepAll(reconcile::Runner& runner, const Clock& clock) {
  for (int i = 0; i < 100 && runner.Step(clock); ++i) {
  }
}

}  // namespace

// A temporary folder, removed with its contents by the destructor.
class SandboxTelemetry::Folder {
 public:
  static Result<std::unique_ptr<Folder>> Make(const std::string& otherwise) {
    std::error_code error;
    std::filesystem::path at = std::filesystem::temp_directory_path(error);
    if (error) at = otherwise;
    std::string path = (at / "nos-sandbox-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      return Status(Code::kUnavailable, "no folder for the dashboard's data: set TMPDIR");
    }
    return std::unique_ptr<Folder>(new Folder(path));
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

SandboxTelemetry::SandboxTelemetry(sim::World& world)
    : world_(world),
      collector_(world.catalogue(),
                 [this](const std::vector<Json>& records) {
                   Batch batch{"cluster", {}, world_.Now()};
                   for (const Json& record : records) {
                     decisions_.Add(record);
                     batch.records.push_back(WriteJson(record));
                   }
                   Send(std::move(batch));
                 }),
      operator_({}) {}

Result<std::unique_ptr<SandboxTelemetry>> SandboxTelemetry::Start(sim::World& world, uint16_t port,
                                                                  bool published,
                                                                  const std::string& folder) {
  std::unique_ptr<SandboxTelemetry> telemetry(new SandboxTelemetry(world));
  NOS_RETURN_IF_ERROR(telemetry->Open(port, published, folder));
  return telemetry;
}

Status SandboxTelemetry::Open(uint16_t port, bool published, const std::string& folder) {
  NOS_ASSIGN(folder_, Folder::Make(folder));
  const size_t rounds = world_.machines().size() / kNodesAtOnce + 1;
  measure_every_ = kMeasureEvery * static_cast<int64_t>(rounds);
  TelemetryServerConfig config;
  config.sandbox = true;
  config.sandbox_cluster = &world_.api();
  config.sandbox_partitions = sim::WorldOptions().partitioned_by;
  config.published = published;
  config.address_key = "--dashboard-port";
  config.address = fmt::format("{}:{}", published ? "0.0.0.0" : "127.0.0.1", port);
  config.recorder.store.path = folder_->path() + "/telemetry.db";
  config.recorder.report_every = measure_every_;
  config.prices = ExamplePrices();
  NOS_ASSIGN(server_, TelemetryServer::Start(config, world_.catalogue(), world_.clock(), metrics_));
  collector_.Lead(true);
  operator_.Lead(true);
  collecting_ = std::make_unique<reconcile::Runner>(collector_, world_.api(), WatchingQuotas());
  operating_ = std::make_unique<reconcile::Runner>(operator_, world_.api(), WatchingQuotas());
  thread_ = std::thread([this] { Deliver(); });
  return Status::Ok();
}

SandboxTelemetry::~SandboxTelemetry() {
  if (server_ != nullptr) server_->HangUp();
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string SandboxTelemetry::Url() const {
  return fmt::format("http://127.0.0.1:{}/", server_->port());
}

void SandboxTelemetry::Tick() {
  StepAll(*operating_, world_.clock());
  StepAll(*collecting_, world_.clock());
  kube::Client client(world_.api());
  collector_.Follow(collecting_->view(), client, world_.clock());
  if (world_.Now() - measured_ < measure_every_) return;
  measured_ = world_.Now();
  Measure();
}

void SandboxTelemetry::Measure() {
  for (const auto& [name, machine] : world_.machines()) {
    if (machine->gpus() == nullptr) continue;
    const bool resets = machine->kubelet().spec().resets != agent::ResetRule::kNever;
    const auto sample =
        telemetry::TakeSample(name, *machine->backend(), machine->kubelet(), world_.catalogue(),
                              nullptr, {sim::kTimeSlices, resets});
    if (!sample.ok()) continue;  // its driver does not answer: the server shows the node as silent
    telemetry::Sampler& sampler = samplers_.try_emplace(name).first->second;
    Send({"node/" + name, sampler.Records(*sample, {}, world_.Now()), world_.Now()});
  }
}

// If the disk is too slow, samples are dropped first; records of the cluster are always queued.
void SandboxTelemetry::Send(Batch batch) {
  if (batch.records.empty()) return;
  {
    const std::scoped_lock lock(mutex_);
    if (batches_.size() >= kMaxBatches && batch.source != "cluster") return;
    batches_.push_back(std::move(batch));
  }
  changed_.notify_all();
}

void SandboxTelemetry::Deliver() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !batches_.empty(); });
    if (stop_) return;
    const Batch batch = std::move(batches_.front());
    batches_.pop_front();
    lock.unlock();
    Take(batch);
    lock.lock();
  }
}

void SandboxTelemetry::Take(const Batch& batch) {
  const telemetry::EnvelopeHead head{
      kCluster, batch.source, NameBasedUuid(batch.source), ++sequences_[batch.source], batch.at, 0};
  const std::string text =
      telemetry::WriteEnvelope(head, fmt::format("{}", fmt::join(batch.records, ",")));
  auto envelope = telemetry::ReadEnvelope(text, ToMillis(world_.clock().Now()));
  Status status = envelope.status();
  if (envelope.ok()) {
    for (const telemetry::Refused& refused : envelope->refused) {
      Log(LogLevel::kWarn, "rejected telemetry record",
          {{"source", batch.source}, {"why", refused.why}});
    }
    status = server_->recorder().Take(std::move(envelope).value(), Gzip(text, 1)).status;
  }
  if (!status.ok()) {
    Log(LogLevel::kWarn, "failed to store telemetry",
        {{"source", batch.source}, {"error", status.ToString()}});
  }
}

}  // namespace nos::cmd
