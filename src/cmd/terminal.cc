#include "cmd/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

namespace nos::cmd {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void OnSignal(int signal) {
  if (interrupted != 0) {
    std::signal(signal, SIG_DFL);
    (void)std::raise(signal);
  }
  interrupted = 1;
}

void WriteAll(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
  (void)std::fflush(stdout);
}

}  // namespace

bool StdoutIsTerminal() { return isatty(STDOUT_FILENO) == 1; }
bool StderrIsTerminal() { return isatty(STDERR_FILENO) == 1; }

ViewSize TerminalSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {size.ws_col, size.ws_row};
}

Interrupt::Interrupt() {
  interrupted = 0;
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  std::signal(SIGHUP, OnSignal);  // the terminal was closed
  std::signal(SIGPIPE, SIG_IGN);  // who read our output is gone: writing fails, we end in order
}
Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGHUP, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
}
bool Interrupt::Requested() const { return interrupted != 0; }

// xterm control sequences: alternate screen 1049, cursor visibility 25.
FullScreen::FullScreen() { WriteAll("\x1b[?1049h\x1b[?25l\x1b[2J"); }
FullScreen::~FullScreen() { WriteAll("\x1b[?25h\x1b[?1049l"); }

void FullScreen::Draw(std::string_view frame) {
  std::string out = "\x1b[H";
  while (!frame.empty()) {
    const size_t end = frame.find('\n');
    out += frame.substr(0, end);
    out += "\x1b[K";  // erase what an earlier, longer line left
    frame.remove_prefix(end == std::string_view::npos ? frame.size() : end + 1);
    if (!frame.empty()) out += "\r\n";
  }
  out += "\x1b[J";
  WriteAll(out);
}

}  // namespace nos::cmd
