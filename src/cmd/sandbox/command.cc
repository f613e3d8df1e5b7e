// nos sandbox: a whole cluster in one process, with virtual GPUs, live on the terminal and open to
// kubectl. The virtual world does the work; this file paces it to wall time and draws it. Its
// partitioner and scheduler use the API server over HTTP, as they do on a real cluster.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>

#include "base/table.h"
#include "base/text.h"
#include "cluster/device_interface.h"
#include "cmd/catalogue_flag.h"
#include "cmd/cli/kubeconfig_file.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/scheduler_file.h"
#include "cmd/sandbox/model.h"
#include "cmd/sandbox/telemetry.h"
#include "cmd/sandbox_view.h"
#include "cmd/terminal.h"
#include "kube/http_transport.h"
#include "sim/cluster_file.h"
#include "sim/lockstep_transport.h"
#include "sim/pace.h"
#include "sim/serve.h"
#include "sim/workload.h"
#include "sim/world.h"

namespace nos::cmd {
namespace {

// Upper limit of the virtual time in which nodes boot; little wall time passes meanwhile.
constexpr uint16_t kDashboardPort = 8090;
constexpr auto kBootTime = std::chrono::seconds(5);

// Requests per second: virtual time may run a thousand times as fast as wall time.
constexpr int kRequests = 100'000;

struct SandboxFlags {
  int nodes = 2, gpus = 2, mps = 0, hybrid = 0, dra = 0;
  bool described = false;  // the flags above describe the nodes
  bool published = false;
  std::vector<std::string> models = {"A100-40GB"};
  std::string cluster_file, workload = "demo", kubeconfig, catalogue;
  uint16_t port = 0;
  std::optional<uint16_t> dashboard_port;
  double speed = 10;
  uint64_t seed = 1;
  double run_seconds = 0;
  Duration hold_after = controllers::PartitionerConfig().hold_after;
};

// Nodes that the flags describe. Models alternate; the last nodes have a DRA driver, then are
// hybrid, then MPS.
Result<std::vector<sim::NodeSpec>> NodesFromFlags(const SandboxFlags& flags,
                                                  const gpu::Catalogue& catalogue) {
  if (!flags.described) return sim::ModesCluster();
  if (flags.dra + flags.hybrid + flags.mps > flags.nodes) {
    return Invalid(
        fmt::format("--dra {}, --hybrid {} and --mps {} are more than {} nodes: raise --nodes",
                    flags.dra, flags.hybrid, flags.mps, flags.nodes));
  }
  std::vector<sim::NodeSpec> nodes;
  for (int n = 0; n < flags.nodes; ++n) {
    const std::string& name = flags.models[static_cast<size_t>(n) % flags.models.size()];
    NOS_ASSIGN(const gpu::Model* model, sim::FindModel(catalogue, name));
    sim::NodeSpec node;
    node.name = fmt::format("node-{}", n + 1);
    node.gpus.resize(static_cast<size_t>(flags.gpus), {model->name(), {}});
    node.mps = n >= flags.nodes - flags.mps;
    node.hybrid = !node.mps && n >= flags.nodes - flags.mps - flags.hybrid;
    node.dra = !node.mps && !node.hybrid && n >= flags.nodes - flags.mps - flags.hybrid - flags.dra;
    node.managed = !node.dra;
    if (node.dra) node.labels[std::string(cluster::kInterfaceLabel)] = "dra";
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::string NameOfFile(const std::string& path) { return path == "-" ? "stdin" : path; }

Result<std::vector<sim::NodeSpec>> ReadNodes(const SandboxFlags& flags,
                                             const gpu::Catalogue& catalogue) {
  if (flags.cluster_file.empty()) return NodesFromFlags(flags, catalogue);
  NOS_ASSIGN(const std::string text, ReadFileOrStdin(flags.cluster_file));
  return sim::ReadCluster(text, NameOfFile(flags.cluster_file), catalogue);
}

// The GPUs of nodes with a DRA driver, or of the others, in their sharing mode.
std::vector<const gpu::Model*> GpusOf(const std::vector<sim::NodeSpec>& nodes, bool dra,
                                      const gpu::Catalogue& catalogue) {
  std::vector<const gpu::Model*> gpus;
  for (const sim::NodeSpec& node : nodes) {
    if (node.dra != dra) continue;
    for (const sim::GpuSpec& spec : node.gpus) {
      // Pods for unknown models are not generated; the node still exists.
      const auto model = sim::FindDividedModel(catalogue, node, spec);
      if (model.ok() && *model != nullptr) gpus.push_back(*model);
    }
  }
  return gpus;
}

sim::Workload DemoWorkload(const SandboxFlags& flags, const std::vector<sim::NodeSpec>& nodes,
                           const gpu::Catalogue& catalogue) {
  const bool modes = !flags.described && flags.cluster_file.empty();
  std::vector<sim::PodSpec> pods =
      modes ? sim::ModesWorkload(flags.seed)
            : sim::DemoWorkload(GpusOf(nodes, /*dra=*/false, catalogue), flags.seed);
  sim::ClaimDemo claims = sim::DemoClaims(GpusOf(nodes, /*dra=*/true, catalogue), flags.seed);
  std::ranges::move(claims.pods, std::back_inserter(pods));
  sim::Workload workload;
  for (Json& claim_template : claims.templates) workload.push_back({{}, std::move(claim_template)});
  std::set<int> priorities = {0};  // needs no PriorityClass
  for (const sim::PodSpec& pod : pods) {
    if (priorities.insert(pod.priority).second)
      workload.push_back({{}, sim::PriorityClassObject(pod.priority)});
    workload.push_back({pod.arrival, sim::PodObject(pod)});
  }
  return workload;
}

Result<sim::Workload> ReadWorkload(const SandboxFlags& flags,
                                   const std::vector<sim::NodeSpec>& nodes,
                                   const gpu::Catalogue& catalogue) {
  if (flags.workload == "none") return sim::Workload();
  if (flags.workload == "demo") return DemoWorkload(flags, nodes, catalogue);
  std::error_code error;
  const std::string with_suffix =
      flags.workload + ".yaml";  // "examples/quotas" works without the suffix
  const bool short_name = !std::filesystem::exists(flags.workload, error) &&
                          std::filesystem::exists(with_suffix, error);
  const std::string& file = short_name ? with_suffix : flags.workload;
  NOS_ASSIGN(const std::string text, ReadFileOrStdin(file));
  return sim::ReadWorkload(text, NameOfFile(file));
}

constexpr auto kMinute = std::chrono::minutes(1);
constexpr int64_t kDemandFrom = 3;  // minutes after the start: the scripted part is over

// Submits what arrives in this minute after the start, and so on, for ever.
void SubmitMinute(sim::World& world, const std::shared_ptr<const sim::TeamsDemand>& demand,
                  Time started, int64_t minute) {
  for (const sim::PodSpec& pod : demand->Minute(minute)) {
    world.Submit(pod, started + minute * kMinute + pod.arrival);
  }
  world.At(started + (minute + 1) * kMinute,
           [&world, demand, started, minute] { SubmitMinute(world, demand, started, minute + 1); });
}

void StartDemand(sim::World& world, const SandboxFlags& flags,
                 const std::vector<sim::NodeSpec>& nodes, const gpu::Catalogue& catalogue,
                 Time started) {
  auto demand =
      std::make_shared<const sim::TeamsDemand>(GpusOf(nodes, /*dra=*/false, catalogue), flags.seed);
  for (const Json& object : demand->Objects()) world.Submit(object, started);
  const Time from = started + kDemandFrom * kMinute;
  world.At(from, [&world, demand, started] { SubmitMinute(world, demand, started, kDemandFrom); });
}

// Pods would wait for ever where nothing serves their claims.
Status CheckClaims(const SandboxFlags& flags, const std::vector<sim::NodeSpec>& nodes,
                   const sim::Workload& workload) {
  if (std::ranges::any_of(nodes, &sim::NodeSpec::dra)) return Status::Ok();
  for (const sim::Arrival& arrival : workload) {
    const std::string_view kind = FindString(arrival.object, "kind");
    if (!kind.starts_with("ResourceClaim")) continue;
    return Invalid(fmt::format(
        "{}: {} {}: no node has a DRA driver; give --dra 1, or in a dump of nodes the label {}=dra",
        NameOfFile(flags.workload), kind, FindString(arrival.object, "metadata", "name"),
        cluster::kInterfaceLabel));
  }
  return Status::Ok();
}

// Pools in the workload; they exist from the start.
Result<std::vector<sim::PoolSpec>> TakePools(const SandboxFlags& flags,
                                             const gpu::Catalogue& catalogue,
                                             sim::Workload& workload) {
  std::vector<sim::PoolSpec> pools;
  for (const sim::Arrival& arrival : workload) {
    if (FindString(arrival.object, "kind") != cluster::kNodePool) continue;
    const std::string where = fmt::format("{}: NodePool {}", NameOfFile(flags.workload),
                                          FindString(arrival.object, "metadata", "name"));
    cluster::NodePool pool;
    NOS_RETURN_IF_ERROR(cluster::ReadNodePool(arrival.object, pool).Within(where));
    NOS_ASSIGN(pools.emplace_back(), sim::PoolSpecOf(pool, catalogue));
  }
  std::erase_if(workload, [](const sim::Arrival& arrival) {
    return FindString(arrival.object, "kind") == cluster::kNodePool;
  });
  return pools;
}

// Short enough to watch idle nodes being removed.
controllers::AutoscalerConfig AutoscalerHere() {
  controllers::AutoscalerConfig config;
  config.shrink_after = std::chrono::minutes(2);
  return config;
}

// CLI::Range accepts "nan".
std::string CheckSpeed(const std::string& text) {
  const auto value = ParseDouble(text);
  return value && *value >= 0.01 && *value <= 1000
             ? ""
             : "'" + text + "' is not a number from 0.01 to 1000";
}

// CLI::PositiveNumber accepts "nan" as well.
std::string CheckRunSeconds(const std::string& text) {
  const auto value = ParseDouble(text);
  return value && *value > 0 && *value <= 1e9
             ? ""
             : "'" + text + "' is not a number of seconds above 0 and up to 1e9";
}

// Error: kInvalid: no folder for temporary files.
Result<std::string> KubeconfigFolder(const SandboxFlags& flags) {
  if (!flags.kubeconfig.empty()) return std::string();
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (!error) return folder.string();
  return Invalid(fmt::format(
      "no folder for the kubeconfig ({}): set TMPDIR or give --kubeconfig FILE", error.message()));
}

struct Session {
  sim::World& world;
  const SandboxFlags& flags;
  std::string hint;
  Time started;
  Interrupt& interrupt;
  SandboxTelemetry& telemetry;
  size_t first_gpu = 0;  // of the view
  bool quit = false, help = false;

  ViewModel Model(double reached) const {
    ViewModel model = Observe(world, started, telemetry.Decisions());
    model.speed = flags.speed;
    model.reached = reached;
    model.hint = fmt::format("dashboard: {}   {}", telemetry.Url(), hint);
    return model;
  }
  bool Over() const { return quit || interrupt.Requested() || !std::cout.good(); }
};

// Runs until Ctrl-C or for the requested time. `each_tick` receives the speed reached. Returns the
// last speed reached.
double Live(const Session& session, const std::function<void(double reached)>& each_tick) {
  std::stop_source stop;
  double last = session.flags.speed;
  sim::PaceOptions options;
  options.speed = session.flags.speed;
  if (session.flags.run_seconds > 0) {
    options.until = session.started + FromSeconds(session.flags.run_seconds);
  }
  // At speed 1, AGE in kubectl is correct only if world time equals wall-clock time.
  if (options.speed == 1) options.late = SystemClock().Now() - session.world.Now();
  options.on_tick = [&](double reached) {
    last = reached;
    session.telemetry.Tick();
    each_tick(reached);
    if (session.Over()) stop.request_stop();
  };
  sim::Pace(session.world, options, stop.get_token());
  return last;
}

// Keys that have been pressed: arrows and pages scroll through the GPUs, ? lists the keys, q ends
// the sandbox.
void PressKeys(Keys& keys, Session& session) {
  constexpr size_t kPage = 10;
  for (int key = keys.Wait({}); key != kNoKey; key = keys.Wait({})) {
    size_t& first = session.first_gpu;
    if (key == 'q' || key == 'Q') session.quit = true;
    if (key == kDown || key == 'j') ++first;
    if (key == kUp || key == 'k') first -= std::min<size_t>(first, 1);
    if (key == kPageDown) first += kPage;
    if (key == kPageUp) first -= std::min(first, kPage);
    if (key == kHome) first = 0;
    if (key == '?') session.help = !session.help;
    if (key == kEscape) session.help = false;
  }
}

void RunOnTerminal(Session& session, bool colours) {
  double reached = 0;
  {
    FullScreen screen;
    Keys keys;
    reached = Live(session, [&](double now) {
      PressKeys(keys, session);
      ViewModel model = session.Model(now);
      if (!model.gpus.empty())
        session.first_gpu = std::min(session.first_gpu, model.gpus.size() - 1);
      model.first_gpu = session.first_gpu;
      model.keys = true;
      model.help = session.help;
      screen.Draw(RenderFrame(model, TerminalSize(), colours));
    });
  }
  std::cout << RenderFrame(session.Model(reached), TerminalSize(), false);
}

void RunPlain(const Session& session) {
  std::cout << "dashboard: " << session.telemetry.Url() << "\n" << session.hint << std::endl;
  session.world.log().SetSink(
      [](std::string_view line) { std::cout << Printable(std::string(line)) << std::endl; });
  bool behind = false;
  const double reached = Live(session, [&](double now) {
    if (behind == FallsBehind(session.flags.speed, now)) return;
    behind = !behind;
    session.world.log().Note("clock", SpeedText(session.flags.speed, now));
  });
  session.world.log().SetSink({});
  std::cout << RenderFrame(session.Model(reached), {100, 1000}, false);
}

// Serves on the default port if the user requested no other one; if it is in use, on a free port.
Result<std::unique_ptr<SandboxTelemetry>> ServeDashboard(sim::World& world,
                                                         const SandboxFlags& flags,
                                                         const std::string& folder) {
  auto served = SandboxTelemetry::Start(world, flags.dashboard_port.value_or(kDashboardPort),
                                        flags.published, folder);
  const bool taken = !served.ok() && served.status().code() == Code::kUnavailable;
  if (!taken || flags.dashboard_port) return served;
  return SandboxTelemetry::Start(world, 0, flags.published, folder);
}

// The Lease of nos scheduler, by which commands know who partitions GPUs. Nobody competes for it.
Status PublishScheduler(kube::Client& client, scheduling::PartitionedBy by) {
  const bool partitions = by == scheduling::PartitionedBy::kScheduler;
  const Json lease = {
      {"apiVersion", "coordination.k8s.io/v1"},
      {"kind", "Lease"},
      {"metadata",
       {{"namespace", "kube-system"},
        {"name", "nos-scheduler"},
        {"annotations", {{kPartitioningProfiles, partitions ? "nos-scheduler" : ""}}}}},
      {"spec", {{"holderIdentity", "sandbox"}}}};
  return client.Create(kube::kLeases, "kube-system", lease).status();
}

Status RunSandbox(const SandboxFlags& flags) {
  NOS_ASSIGN(const gpu::Catalogue catalogue, ReadCatalogue(flags.catalogue));
  NOS_ASSIGN(std::vector<sim::NodeSpec> nodes, ReadNodes(flags, catalogue));
  NOS_ASSIGN(sim::Workload workload, ReadWorkload(flags, nodes, catalogue));
  NOS_RETURN_IF_ERROR(CheckClaims(flags, nodes, workload));
  NOS_ASSIGN(const std::vector<sim::PoolSpec> pools, TakePools(flags, catalogue, workload));
  const bool only_pools = !flags.described && flags.cluster_file.empty() && !pools.empty();
  if (only_pools) nodes.clear();
  NOS_ASSIGN(const std::filesystem::path folder, KubeconfigFolder(flags));
  sim::WorldOptions options;
  options.seed = flags.seed;
  // Booting ends now, because kubectl computes AGE from the wall clock.
  options.start = std::chrono::floor<std::chrono::seconds>(SystemClock().Now()) - kBootTime;
  options.partitioner.hold_after = flags.hold_after;
  options.keep_finished = std::chrono::minutes(2);
  if (!pools.empty()) options.autoscaler = AutoscalerHere();
  // These outlive the world and connect to its API server.
  std::optional<kube::HttpTransport> network;
  std::optional<sim::LockstepTransport> transport;
  sim::World world(options, catalogue);
  for (const sim::NodeSpec& node : nodes) {
    const Status added = world.AddNode(node);
    if (added.ok()) continue;
    return flags.cluster_file.empty() ? added : added.Within(NameOfFile(flags.cluster_file));
  }
  for (const sim::PoolSpec& pool : pools) NOS_RETURN_IF_ERROR(world.AddPool(pool));
  NOS_RETURN_IF_ERROR(world.Boot());
  world.RunUntil(options.start + kBootTime);
  const Time started = world.Now();
  kube::Client client(world.api());
  NOS_RETURN_IF_ERROR(sim::DefineQuotas(client));
  NOS_RETURN_IF_ERROR(PublishScheduler(client, options.partitioned_by));
  for (const sim::Arrival& arrival : workload) world.Submit(arrival.object, started + arrival.at);
  if (flags.workload == "demo") StartDemand(world, flags, nodes, catalogue, started);
  auto serving = sim::ServeApi(world.api(), flags.published ? "0.0.0.0" : "127.0.0.1", flags.port,
                               std::chrono::minutes(1),
                               flags.published ? sim::Reach::kPublished : sim::Reach::kThisMachine);
  if (!serving.ok()) {
    return {serving.status().code(),
            fmt::format("{}; choose another port with --port, or omit it to use a free one",
                        serving.status().message())};
  }
  const std::unique_ptr<net::HttpServer> server = std::move(serving).value();
  const std::string path =
      !flags.kubeconfig.empty()
          ? flags.kubeconfig
          : (folder / fmt::format("nos-sandbox-{}.yaml", server->port())).string();
  NOS_ASSIGN(const auto kubeconfig, KubeconfigFile::Write(path, server->port()));
  NOS_ASSIGN(kube::ConnectionConfig connection, kube::LoadConnection(kubeconfig->path(), ""));
  network.emplace(std::move(connection),
                  kube::HttpOptions{.requests_per_second = kRequests, .burst = kRequests});
  transport.emplace(*network, world.api());
  world.StartControllers(&*transport);
  NOS_ASSIGN(const auto telemetry,
             ServeDashboard(world, flags, std::filesystem::absolute(path).parent_path()));
  Interrupt interrupt(kubeconfig->path());
  Session session{
      world, flags,
      // In a container the file is out of the user's reach.
      flags.published
          ? fmt::format("try: kubectl --server http://127.0.0.1:{} get pods -o wide",
                        server->port())
          : fmt::format("try: kubectl --kubeconfig {} get pods -o wide", kubeconfig->path()),
      started, interrupt, *telemetry};
  if (const Display display = StdoutDisplay(); display.screen) {
    RunOnTerminal(session, display.colours);
  } else {
    RunPlain(session);
  }
  for (const std::string& broken : world.violations()) {
    std::cerr << "nos sandbox: invariant violated: " << broken << "\n";
  }
  return world.violations().empty()
             ? Status::Ok()
             : Internal(
                   "an invariant was violated; please report this with the seed and the flags");
}

// Options that describe the cluster. Any of them replaces the default one.
std::vector<CLI::Option*> AddClusterOptions(CLI::App* command, SandboxFlags* flags) {
  auto* nodes =
      command
          ->add_option("--nodes", flags->nodes,
                       "Number of nodes; default without any node flag: one node of each kind")
          ->check(CLI::Range(1, 5000))
          ->capture_default_str();
  auto* gpus = command->add_option("--gpus", flags->gpus, "Number of GPUs on each node")
                   ->check(CLI::Range(1, 16))
                   ->capture_default_str();
  auto* mps =
      command
          ->add_option("--mps", flags->mps,
                       "Number of nodes, counted from the last, that share GPUs by memory (MPS)")
          ->check(CLI::Range(0, 5000))
          ->capture_default_str();
  auto* hybrid =
      command
          ->add_option(
              "--hybrid", flags->hybrid,
              "Number of nodes before the MPS nodes that choose MIG, MPS, time slices or none "
              "for each GPU")
          ->check(CLI::Range(0, 5000))
          ->capture_default_str();
  auto* dra =
      command
          ->add_option("--dra", flags->dra,
                       "Number of nodes before the hybrid nodes whose GPUs a DRA driver announces, "
                       "for ResourceClaims")
          ->check(CLI::Range(0, 5000))
          ->capture_default_str();
  auto* models =
      command->add_option("--model", flags->models, "GPU model; nodes alternate between several");
  OfferWords(*models, ModelNames(), false, "NAME [" + flags->models.front() + "]");
  command->add_option("--cluster", flags->cluster_file, "Read the nodes from a dump (YAML or JSON)")
      ->option_text("FILE")
      ->excludes(nodes)
      ->excludes(gpus)
      ->excludes(mps)
      ->excludes(hybrid)
      ->excludes(dra)
      ->excludes(models);
  return {nodes, gpus, mps, hybrid, dra, models};
}

}  // namespace

void AddSandboxCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "sandbox", "Run a cluster with virtual GPUs in this process and watch nos share its GPUs");
  auto flags = std::make_shared<SandboxFlags>();
  const std::vector<CLI::Option*> of_cluster = AddClusterOptions(command, flags.get());
  OfferWords(
      *command->add_option("--workload", flags->workload, "Pods to submit: demo, none or FILE"),
      {"demo", "none"}, true, "NAME|FILE [demo]");
  command
      ->add_option("--port", flags->port, "Port of the API server on 127.0.0.1; 0 uses a free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option("--dashboard-port", flags->dashboard_port,
                   "Port of the dashboard on 127.0.0.1; 0 uses a free port")
      ->check(CLI::Range(0, 65535))
      ->option_text("PORT [8090, or a free port]");
  command->add_flag("--published", flags->published,
                    "Listen on every address, in a container whose ports are published");
  command->add_option("--kubeconfig", flags->kubeconfig, "File to write the kubeconfig to")
      ->option_text("FILE");
  command
      ->add_option("--speed", flags->speed, "Speed of virtual time, 0.01 to 1000 times real time")
      ->check(CheckSpeed)
      ->capture_default_str();
  command
      ->add_option("--seed", flags->seed,
                   "Seed of random numbers; a run without kubectl changes is reproducible")
      ->check(CheckSeed)
      ->capture_default_str();
  command->add_option("--for", flags->run_seconds, "Exit after this many virtual seconds")
      ->check(CheckRunSeconds)
      ->option_text("SECONDS");
  AddHoldAfterFlag(*command, flags->hold_after);
  AddCatalogueFlag(*command, flags->catalogue);
  command->footer(
      "Examples:\n"
      "  nos sandbox\n"
      "  nos sandbox --nodes 4 --gpus 8 --model H100-80GB --speed 5\n"
      "  nos sandbox --nodes 3 --mps 1 --hybrid 1 --model H100-80GB\n"
      "  nos sandbox --nodes 2 --dra 1 --workload examples/claims\n"
      "  nos sandbox --workload examples/modes\n"
      "  nos sandbox --workload examples/bursty --speed 5\n"
      "  nos sandbox --workload none            then: kubectl apply -f my-pods.yaml\n"
      "  kubectl get nodes -o yaml > nodes.yaml; nos sandbox --cluster nodes.yaml");
  command->callback([&chosen, flags, cluster = of_cluster] {
    flags->described =
        std::ranges::any_of(cluster, [](const CLI::Option* option) { return option->count() > 0; });
    chosen.action = [flags] {
      const Status status = RunSandbox(*flags);
      return status.ok() ? 0 : Fail("nos sandbox", status);
    };
  });
}

}  // namespace nos::cmd
