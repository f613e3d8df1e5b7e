// nos mps: starts MPS control daemons for the node's agent, and outlives it.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/wake_signal.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/outside_events.h"
#include "device/mps_keeper.h"

namespace nos::cmd {
namespace {

int Keep(const device::MpsKeeperOptions& options) {
  WakeSignal bell;
  OutsideEvents events({}, [&] { bell.Ring(); });
  device::MpsKeeper keeper(options);
  if (const Status started = keeper.Start(); !started.ok()) return Fail("nos mps", started);
  while (!events.StopAsked()) (void)bell.Wait(std::chrono::hours(24));
  return 0;
}

}  // namespace

void AddMpsCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "mps", "Start MPS daemons for the node's agent, in a process that outlives it");
  auto options = std::make_shared<device::MpsKeeperOptions>();
  command->add_option("--socket", options->socket, "Unix socket for the agent (mps.keeper)")
      ->capture_default_str();
  command->add_option("--folder", options->folder, "Folder of the daemons' pipes (mps.folder)")
      ->capture_default_str();
  command->add_option("--log-folder", options->log_folder, "Folder of their logs (mps.logFolder)")
      ->capture_default_str();
  command->add_option("--program", options->program, "NVIDIA's MPS control daemon (mps.program)")
      ->capture_default_str();
  command->callback([&chosen, options] { chosen.action = [options] { return Keep(*options); }; });
}

}  // namespace nos::cmd
