#include "cmd/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "base/table.h"

namespace nos::cmd {
namespace {

// xterm control sequences: alternate screen 1049, cursor visibility 25.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";

volatile std::sig_atomic_t interrupted = 0;
volatile std::sig_atomic_t on_screen = 0;
volatile std::sig_atomic_t keys_taken = 0;
termios keys_before;         // valid while keys_taken
char doomed_file[PATH_MAX];  // "": none

// Async-signal-safe: calls only functions that POSIX allows in a signal handler.
void EndAtOnce(int signal) {
  if (on_screen != 0) (void)!write(STDOUT_FILENO, kLeave.data(), kLeave.size());
  if (keys_taken != 0) (void)tcsetattr(STDIN_FILENO, TCSANOW, &keys_before);
  if (doomed_file[0] != '\0') (void)unlink(static_cast<const char*>(doomed_file));
  std::signal(signal, SIG_DFL);
  (void)std::raise(signal);
}

void OnSignal(int signal) {
  if (interrupted != 0) EndAtOnce(signal);
  interrupted = 1;
}

void WriteAll(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
  (void)std::fflush(stdout);
}

}  // namespace

Display DisplayOf(bool is_terminal, const char* term, const char* no_color) {
  const std::string_view name = term == nullptr ? "" : term;
  const bool screen = is_terminal && !name.empty() && name != "dumb";
  return {screen, screen && (no_color == nullptr || *no_color == '\0')};
}

namespace {
// NOLINTBEGIN(concurrency-mt-unsafe): no thread changes the environment.
Display DisplayAt(int fd) {
  return DisplayOf(isatty(fd) == 1, std::getenv("TERM"), std::getenv("NO_COLOR"));
}
// NOLINTEND(concurrency-mt-unsafe)
}  // namespace

Display StdoutDisplay() { return DisplayAt(STDOUT_FILENO); }
Display StderrDisplay() { return DisplayAt(STDERR_FILENO); }

ViewSize TerminalSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return {size.ws_col, size.ws_row};
}

size_t TableWidth() { return isatty(STDOUT_FILENO) == 1 ? TerminalSize().columns : kUncut; }

Interrupt::Interrupt(const std::string& doomed) {
  interrupted = 0;
  // A path that is too long cannot be opened either.
  doomed_file[doomed.copy(static_cast<char*>(doomed_file), sizeof doomed_file - 1)] = '\0';
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  std::signal(SIGHUP, OnSignal);  // the terminal was closed
  std::signal(SIGQUIT, EndAtOnce);
  std::signal(
      SIGPIPE,
      SIG_IGN);  // the reader of our output is gone: writes fail and the command ends in order
}
Interrupt::~Interrupt() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signal, SIG_DFL);
  doomed_file[0] = '\0';
}
bool Interrupt::Requested() const { return interrupted != 0; }

FullScreen::FullScreen() {
  on_screen = 1;
  WriteAll(kEnter);
}
FullScreen::~FullScreen() {
  WriteAll(kLeave);
  on_screen = 0;
}

void FullScreen::Draw(std::string_view frame) {
  std::string out = "\x1b[H";
  while (!frame.empty()) {
    const size_t end = frame.find('\n');
    out += frame.substr(0, end);
    out += "\x1b[K";  // erase the rest of a longer earlier line
    frame.remove_prefix(end == std::string_view::npos ? frame.size() : end + 1);
    if (!frame.empty()) out += "\r\n";
  }
  out += "\x1b[J";
  WriteAll(out);
}

Keys::Keys() {
  std::signal(SIGWINCH, [](int) {});  // no action; poll returns with EINTR
  if (isatty(STDIN_FILENO) != 1 || tcgetattr(STDIN_FILENO, &keys_before) != 0) return;
  keys_taken = 1;
  termios raw = keys_before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

Keys::~Keys() {
  if (keys_taken != 0) (void)tcsetattr(STDIN_FILENO, TCSANOW, &keys_before);
  keys_taken = 0;
  std::signal(SIGWINCH, SIG_DFL);
}

std::vector<int> TakeKeys(std::string& bytes, bool all) {
  // ECMA-48 control sequences: ESC [ parameters final; xterm's application mode: ESC O final.
  static const std::map<std::string, int, std::less<>> kSequences = {
      {"[A", kUp},        {"OA", kUp},   {"[B", kDown}, {"OB", kDown},  {"[5~", kPageUp},
      {"[6~", kPageDown}, {"[H", kHome}, {"OH", kHome}, {"[1~", kHome}, {"[7~", kHome},
      {"[F", kEnd},       {"OF", kEnd},  {"[4~", kEnd}, {"[8~", kEnd},  {"[Z", kBackTab}};
  std::vector<int> keys;
  size_t at = 0;
  while (at < bytes.size()) {
    if (bytes[at] != kEscape) {
      keys.push_back(static_cast<unsigned char>(bytes[at++]));
      continue;
    }
    size_t end = at + 1;
    const bool sequence = end < bytes.size() && (bytes[end] == '[' || bytes[end] == 'O');
    if (sequence) {
      ++end;
      while (end < bytes.size() && (bytes[end] < '@' || bytes[end] > '~')) ++end;
    }
    const bool complete = sequence ? end < bytes.size() : end < bytes.size() || all;
    if (!complete) break;
    if (!sequence) {
      keys.push_back(kEscape);
      at = end;
      continue;
    }
    const auto known = kSequences.find(std::string_view(bytes).substr(at + 1, end - at));
    if (known != kSequences.end()) keys.push_back(known->second);
    at = end + 1;
  }
  bytes.erase(0, at);
  if (all) bytes.clear();
  return keys;
}

int Keys::Next() {
  if (keys_.empty()) return kNoKey;
  const int key = keys_.back();
  keys_.pop_back();
  return key;
}

int Keys::Wait(Duration at_most) {
  if (!keys_.empty()) return Next();
  constexpr int kRestOfSequence = 50;  // milliseconds
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  std::array<pollfd, 2> ready = {
      {{wake_.fd(), POLLIN, 0}, {keys_taken != 0 ? STDIN_FILENO : -1, POLLIN, 0}}};
  const int count =
      poll(ready.data(), ready.size(),
           bytes_.empty() ? static_cast<int>(std::min<int64_t>(limit, INT_MAX)) : kRestOfSequence);
  if (count < 0) return kNoKey;
  if (ready[0].revents != 0) wake_.Clear();
  bool all = count == 0;
  if (ready[1].revents != 0) {
    std::array<char, 64> read_bytes{};
    const ssize_t got = read(STDIN_FILENO, read_bytes.data(), read_bytes.size());
    if (got <= 0) return 'q';  // the terminal is gone
    bytes_.append(read_bytes.data(), static_cast<size_t>(got));
    all = false;
  }
  keys_ = TakeKeys(bytes_, all);
  std::ranges::reverse(keys_);
  return Next();
}

}  // namespace nos::cmd
