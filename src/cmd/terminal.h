// The terminal of the command: size, full-screen drawing, and Ctrl-C as a flag.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "cmd/sandbox_view.h"

namespace nos::cmd {

// Capabilities of an output.
struct Display {
  bool screen = false;   // escape sequences move the cursor
  bool colours = false;  // escape sequences set colours
};
// `term` and `no_color` are the environment's TERM and NO_COLOR; null if not set. TERM=dumb or an
// unset TERM gives plain lines. Any NO_COLOR except "" turns colours off (no-color.org).
Display DisplayOf(bool is_terminal, const char* term, const char* no_color);
Display StdoutDisplay();
Display StderrDisplay();
// Size of the terminal on standard output; the default of ViewSize if it is not a terminal.
ViewSize TerminalSize();
// Maximum line length of a table on standard output: the terminal's width, or kUncut (base/table.h)
// for a file or a pipe.
size_t TableWidth();

// While it lives, SIGINT, SIGTERM and SIGHUP set a flag and do not end the process. A second
// signal, or SIGQUIT, ends the process at once, after it removes the file `doomed` and restores the
// terminal if a FullScreen lives. SIGPIPE is ignored. At most one instance at a time.
class Interrupt {
 public:
  explicit Interrupt(const std::string& doomed);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  bool Requested() const;
};

// Uses the alternate screen while it lives; the destructor restores the terminal.
class FullScreen {
 public:
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;
  void Draw(std::string_view frame);
};

// Keys without a character, beyond all characters.
enum Key : int {
  kNoKey = 0,
  kEscape = 27,
  kUp = 256,
  kDown,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kBackTab,
};
// The keys in what a terminal has sent: characters, or values of Key. Sequences of xterm and VT220
// are known, others are skipped. A sequence that is not complete stays in `bytes`; with `all`, a
// lone escape character is the key.
std::vector<int> TakeKeys(std::string& bytes, bool all);

// While it lives, keys on standard input arrive when they are pressed, without echo. If standard
// input is not a terminal, no keys arrive. At most one instance at a time.
class Keys {
 public:
  Keys();
  ~Keys();
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  // Returns the next key, or kNoKey if Wake was called, a signal arrived, the window was resized,
  // or `at_most` has passed.
  int Wait(Duration at_most);
  void Wake() const { wake_.Signal(); }  // from any thread

 private:
  int Next();

  const WakeUp wake_;
  std::string bytes_;      // of a sequence that is not complete
  std::vector<int> keys_;  // not returned yet, last one first
};

}  // namespace nos::cmd
