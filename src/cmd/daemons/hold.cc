// nos hold: the process of placeholder pods.
#include <CLI/CLI.hpp>

#include "base/wake_signal.h"
#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/daemon/outside_events.h"

namespace nos::cmd {
namespace {

int Hold() {
  WakeSignal bell;
  OutsideEvents events({}, [&] { bell.Ring(); });
  while (!events.StopAsked()) (void)bell.Wait(std::chrono::hours(24));
  return 0;
}

}  // namespace

void AddHoldCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command =
      root.add_subcommand("hold", "Sleep until terminated (used by placeholder pods)");
  command->callback([&chosen] { chosen.action = Hold; });
}

}  // namespace nos::cmd
