// The terminal the command runs in: size, full-screen drawing, and Ctrl-C as a flag.
#pragma once

#include <string_view>

#include "cmd/sandbox_view.h"

namespace nos::cmd {

bool StdoutIsTerminal();
bool StderrIsTerminal();
// Of the terminal on standard output; the default of ViewSize where there is none.
ViewSize TerminalSize();

// From construction on SIGINT, SIGTERM and SIGHUP set a flag instead of ending the process; the
// second one ends it at once. SIGPIPE is ignored. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  bool Requested() const;
};

// Takes the whole screen while it lives and gives it back as it was.
class FullScreen {
 public:
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;
  void Draw(std::string_view frame);
};

}  // namespace nos::cmd
