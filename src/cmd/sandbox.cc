// nos sandbox: a whole cluster in one process, with virtual GPUs, live on the terminal and open to
// kubectl. The virtual world does the work; this file paces it to wall time and draws it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <stop_token>

#include "base/text.h"
#include "cmd/command.h"
#include "cmd/sandbox_model.h"
#include "cmd/sandbox_view.h"
#include "cmd/terminal.h"
#include "sim/apiserver/serve.h"
#include "sim/world/cluster_file.h"
#include "sim/world/pace.h"
#include "sim/world/workload.h"
#include "sim/world/world.h"

namespace nos::cmd {
namespace {

constexpr auto kBootTime = std::chrono::seconds(5);

struct SandboxFlags {
  int nodes = 2, gpus = 2;
  std::vector<std::string> models = {"A100-40GB"};
  std::string cluster_file, workload = "demo", kubeconfig;
  uint16_t port = 0;
  double speed = 1;
  uint64_t seed = 1;
  double run_seconds = 0;
  Duration hold_after = controllers::PartitionerConfig().starvation_after;
};

// The nodes that the flags describe: all alike, models in turn.
Result<std::vector<sim::NodeSpec>> NodesFromFlags(const SandboxFlags& flags) {
  std::vector<sim::NodeSpec> nodes;
  for (int n = 0; n < flags.nodes; ++n) {
    const std::string& name = flags.models[static_cast<size_t>(n) % flags.models.size()];
    NOS_ASSIGN(const gpu::Model* model, sim::FindModel(gpu::Catalogue::Builtin(), name));
    sim::NodeSpec node;
    node.name = fmt::format("node-{}", n + 1);
    node.gpus.resize(static_cast<size_t>(flags.gpus), {model->name(), {}});
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Result<std::vector<sim::NodeSpec>> ReadNodes(const SandboxFlags& flags) {
  if (flags.cluster_file.empty()) return NodesFromFlags(flags);
  NOS_ASSIGN(const std::string text, ReadFile(flags.cluster_file));
  return sim::ReadCluster(text, flags.cluster_file, gpu::Catalogue::Builtin());
}

sim::Workload DemoWorkload(const SandboxFlags& flags, const std::vector<sim::NodeSpec>& nodes) {
  std::vector<const gpu::Model*> gpus;
  for (const sim::NodeSpec& node : nodes) {
    for (const sim::GpuSpec& spec : node.gpus) {
      // A node of a model that nobody knows is there, and has no part in this.
      const auto model = sim::FindModel(gpu::Catalogue::Builtin(), spec.model);
      if (model.ok()) gpus.push_back(*model);
    }
  }
  sim::Workload workload;
  std::set<int> priorities = {0};  // needs no class
  for (const sim::PodSpec& pod : sim::DemoWorkload(gpus, flags.seed)) {
    if (priorities.insert(pod.priority).second)
      workload.push_back({{}, sim::PriorityClassObject(pod.priority)});
    workload.push_back({pod.arrival, sim::PodObject(pod)});
  }
  return workload;
}

Result<sim::Workload> ReadWorkload(const SandboxFlags& flags,
                                   const std::vector<sim::NodeSpec>& nodes) {
  if (flags.workload == "none") return sim::Workload();
  if (flags.workload == "demo") return DemoWorkload(flags, nodes);
  NOS_ASSIGN(const std::string text, ReadFile(flags.workload));
  return sim::ReadWorkload(text, flags.workload);
}

// A kubeconfig that exists as long as the sandbox does, locked so that no second sandbox takes it.
class KubeconfigFile {
 public:
  static Result<std::unique_ptr<KubeconfigFile>> Write(const std::string& path, uint16_t port) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
      return Invalid(
          fmt::format("cannot write the kubeconfig '{}': {}", path, std::strerror(errno)));
    }
    std::unique_ptr<KubeconfigFile> file(new KubeconfigFile(path, fd));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      return Invalid(
          fmt::format("'{}' belongs to a sandbox that is running; choose another file "
                      "with --kubeconfig",
                      path));
    }
    if (!EmptyOrOurs(fd)) {
      return Invalid(
          fmt::format("'{}' exists and is not a sandbox's kubeconfig; choose another "
                      "with --kubeconfig",
                      path));
    }
    const std::string text = std::string(kMark) + "\n" + sim::KubeconfigFor("127.0.0.1", port);
    if (ftruncate(fd, 0) != 0 ||
        pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      return Invalid(
          fmt::format("cannot write the kubeconfig '{}': {}", path, std::strerror(errno)));
    }
    file->ours_ = true;
    return file;
  }
  ~KubeconfigFile() {
    if (ours_) (void)unlink(path_.c_str());
    (void)close(fd_);
  }
  KubeconfigFile(const KubeconfigFile&) = delete;
  KubeconfigFile& operator=(const KubeconfigFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  static constexpr std::string_view kMark = "# written by nos sandbox; removed when it ends";
  KubeconfigFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  static bool EmptyOrOurs(int fd) {
    std::string start(kMark.size(), '\0');
    const ssize_t read = pread(fd, start.data(), start.size(), 0);
    return read == 0 || start == kMark;
  }
  const std::string path_;
  const int fd_;
  bool ours_ = false;
};

// CLI::Range lets "nan" pass.
std::string CheckSpeed(const std::string& text) {
  const auto value = ParseDouble(text);
  return value && *value >= 0.01 && *value <= 1000
             ? ""
             : "'" + text + "' is not a number from 0.01 to 1000";
}

// CLI::PositiveNumber lets "nan" pass, too.
std::string CheckRunSeconds(const std::string& text) {
  const auto value = ParseDouble(text);
  return value && *value > 0 && *value <= 1e9
             ? ""
             : "'" + text + "' is not a number of seconds above 0 and up to 1e9";
}

std::string DefaultKubeconfig(uint16_t port) {
  return (std::filesystem::temp_directory_path() / fmt::format("nos-sandbox-{}.yaml", port))
      .string();
}

struct Session {
  sim::World& world;
  const SandboxFlags& flags;
  std::string hint;
  Time started;
  Interrupt& interrupt;

  ViewModel Model() const {
    ViewModel model = Observe(world, started);
    model.speed = flags.speed;
    model.hint = hint;
    return model;
  }
  bool Over() const {
    if (interrupt.Requested() || !std::cout.good()) return true;
    return flags.run_seconds > 0 && world.Now() - started >= FromSeconds(flags.run_seconds);
  }
};

// Runs until Ctrl-C, or for the time asked; `each_tick` draws.
void Live(const Session& session, const std::function<void()>& each_tick) {
  std::stop_source stop;
  sim::PaceOptions options;
  options.speed = session.flags.speed;
  options.on_tick = [&] {
    each_tick();
    if (session.Over()) stop.request_stop();
  };
  sim::Pace(session.world, options, stop.get_token());
}

void RunOnTerminal(const Session& session) {
  {
    FullScreen screen;
    Live(session, [&] { screen.Draw(RenderFrame(session.Model(), TerminalSize(), true)); });
  }
  std::cout << RenderFrame(session.Model(), TerminalSize(), false);
}

void RunPlain(const Session& session) {
  std::cout << session.hint << "\n";
  session.world.log().SetSink([](std::string_view line) { std::cout << line << std::endl; });
  Live(session, [] {});
  session.world.log().SetSink({});
  std::cout << RenderFrame(session.Model(), {100, 1000}, false);
}

Status RunSandbox(const SandboxFlags& flags) {
  NOS_ASSIGN(const std::vector<sim::NodeSpec> nodes, ReadNodes(flags));
  NOS_ASSIGN(const sim::Workload workload, ReadWorkload(flags, nodes));
  sim::WorldOptions options;
  options.seed = flags.seed;
  // Ages as kubectl shows them count from here; booting takes the nodes some seconds of their time.
  options.start = std::chrono::floor<std::chrono::seconds>(SystemClock().Now()) - kBootTime;
  options.partitioner.starvation_after = flags.hold_after;
  options.keep_finished = std::chrono::minutes(2);
  sim::World world(options, gpu::Catalogue::Builtin());
  for (const sim::NodeSpec& node : nodes) NOS_RETURN_IF_ERROR(world.AddNode(node));
  NOS_RETURN_IF_ERROR(world.Boot());
  const Time started = world.Now();
  for (const sim::Arrival& arrival : workload) world.Submit(arrival.object, started + arrival.at);
  auto serving = sim::ServeApi(world.api(), "127.0.0.1", flags.port);
  if (!serving.ok()) {
    return {serving.status().code(),
            fmt::format("{}; choose another port with --port, or leave it out for a free one",
                        serving.status().message())};
  }
  const std::unique_ptr<net::HttpServer> server = std::move(serving).value();
  const std::string path =
      flags.kubeconfig.empty() ? DefaultKubeconfig(server->port()) : flags.kubeconfig;
  NOS_ASSIGN(const auto kubeconfig, KubeconfigFile::Write(path, server->port()));
  world.StartControllers();
  Interrupt interrupt;
  const Session session{
      world, flags,
      fmt::format("try: kubectl --kubeconfig {} get pods -o wide", kubeconfig->path()), started,
      interrupt};
  if (StdoutIsTerminal()) {
    RunOnTerminal(session);
  } else {
    RunPlain(session);
  }
  for (const std::string& broken : world.violations()) {
    std::cerr << "nos sandbox: broken promise: " << broken << "\n";
  }
  return world.violations().empty()
             ? Status::Ok()
             : Internal("a promise was broken; please report this with the seed and the flags");
}

}  // namespace

void AddSandboxCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "sandbox", "Run a cluster with virtual GPUs in this process and watch nos share them");
  auto flags = std::make_shared<SandboxFlags>();
  auto* nodes = command->add_option("--nodes", flags->nodes, "How many nodes")
                    ->check(CLI::Range(1, 5000))
                    ->capture_default_str();
  auto* gpus = command->add_option("--gpus", flags->gpus, "GPUs on each node")
                   ->check(CLI::Range(1, 16))
                   ->capture_default_str();
  auto* models = command->add_option("--model", flags->models, "GPU model; several take turns")
                     ->option_text("NAME")
                     ->capture_default_str();
  command->add_option("--cluster", flags->cluster_file, "Nodes from a dump (YAML or JSON) instead")
      ->option_text("FILE")
      ->excludes(nodes)
      ->excludes(gpus)
      ->excludes(models);
  command->add_option("--workload", flags->workload, "Pods to submit: demo, none or a FILE")
      ->capture_default_str();
  command
      ->add_option("--port", flags->port, "Port of the API server on 127.0.0.1; 0 takes a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--kubeconfig", flags->kubeconfig, "Where to write the kubeconfig")
      ->option_text("FILE");
  command->add_option("--speed", flags->speed, "How fast time passes")
      ->check(CheckSpeed)
      ->capture_default_str();
  command->add_option("--seed", flags->seed, "Makes a run repeatable")
      ->check(CheckSeed)
      ->capture_default_str();
  command->add_option("--for", flags->run_seconds, "End after so many virtual seconds")
      ->check(CheckRunSeconds)
      ->option_text("SECONDS");
  AddHoldAfterFlag(*command, flags->hold_after);
  command->footer(
      "Examples:\n"
      "  nos sandbox\n"
      "  nos sandbox --nodes 4 --gpus 8 --model H100-80GB --speed 5\n"
      "  nos sandbox --workload none            then: kubectl apply -f my-pods.yaml\n"
      "  kubectl get nodes -o yaml > nodes.yaml; nos sandbox --cluster nodes.yaml");
  command->callback([&chosen, flags] {
    chosen.action = [flags] {
      const Status status = RunSandbox(*flags);
      return status.ok() ? 0 : Fail("nos sandbox", status);
    };
  });
}

}  // namespace nos::cmd
