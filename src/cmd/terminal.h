// The terminal the command runs in: size, full-screen drawing, and Ctrl-C as a flag.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "cmd/sandbox_view.h"

namespace nos::cmd {

// What an output can show.
struct Display {
  bool screen = false;   // escape sequences move the cursor
  bool colours = false;  // and paint
};
// `term` and `no_color` are the environment's TERM and NO_COLOR; null: not set. A terminal called
// "dumb", or of which nothing is known, gets plain lines; any NO_COLOR but "" turns colours off
// (no-color.org).
Display DisplayOf(bool is_terminal, const char* term, const char* no_color);
Display StdoutDisplay();
Display StderrDisplay();
// Of the terminal on standard output; the default of ViewSize where there is none.
ViewSize TerminalSize();
// How long lines of a table on standard output may be: the terminal's width; kUncut (base/table.h)
// into a file or a pipe.
size_t TableWidth();

// From construction on SIGINT, SIGTERM and SIGHUP set a flag instead of ending the process. The
// second one, and SIGQUIT, end it at once: after the file `doomed` is removed and, if a FullScreen
// lives, the terminal is as it was. SIGPIPE is ignored. One at a time.
class Interrupt {
 public:
  explicit Interrupt(const std::string& doomed);
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

// While it lives, keys of the terminal on standard input come as they are pressed, and are not
// shown. Where that is no terminal, none come. One at a time.
class Keys {
 public:
  Keys();
  ~Keys();
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  // The next key, or 0: Wake was called, a signal came, the window has another size, or the time is
  // up.
  char Wait(Duration at_most);
  void Wake() const { wake_.Signal(); }  // from any thread

 private:
  const WakeUp wake_;
};

}  // namespace nos::cmd
