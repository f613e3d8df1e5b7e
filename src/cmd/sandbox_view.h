// The sandbox's live picture as text: GPUs as rows of slots, who waits and why, what was decided.
// Pure: a model in, a frame out; the caller owns the terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace nos::cmd {

struct SlotSpan {
  int start = 0, size = 1;  // slots
  std::string profile;      // "3g.20gb", "10gb"
  std::string pod;          // "namespace/name" that holds it; empty: free
};

struct GpuRow {
  std::string node;
  int index = 0;
  std::string model;
  int slots = 8;                // of placements; of a GPU that is shared by memory, GiB
  std::vector<SlotSpan> spans;  // sorted by start, not overlapping
  bool changing = false;        // the agent is cutting it now
  bool by_memory = false;
  // In which way it is used ("MPS"); where there are others than MIG, "free" while nothing is on
  // it.
  std::string way{};

  // As many characters as a slot takes, so often its row is as wide.
  size_t cells() const { return by_memory ? 8 : static_cast<size_t>(slots); }
};

// Shares of memory lie nowhere: one after another, in order of what is their start so far.
void LayOut(std::vector<SlotSpan>& shares);

struct WaitingRow {
  std::string pod, asks, why;
  Duration age{};
  std::string remedy{};  // shown where there is room
};

struct DecisionRow {
  Duration at{};                     // since the sandbox started
  std::string subject;               // "node-1 gpu 0"
  std::vector<std::string> changes;  // "+3g.20gb@4", "-1g.5gb@5"
  std::vector<std::string> pods;     // for which
  std::string note;                  // instead of changes and pods, when not empty
};

// Nodes that come and go.
struct PoolRow {
  std::string name;
  int nodes = 0, coming = 0, going = 0;
  int min = 0, max = 0;
  double cost = 0;  // so far
};

struct ViewModel {
  Duration elapsed{};             // virtual time
  double speed = 1, reached = 1;  // asked for, and of the last seconds
  int running = 0, finished = 0;
  std::vector<GpuRow> gpus;
  std::vector<WaitingRow> waiting;
  std::vector<DecisionRow> decisions;  // oldest first
  std::string hint;                    // the command to try next
  std::vector<PoolRow> pools{};
};

struct ViewSize {
  size_t columns = 100, lines = 40;
};

// "speed 5x", or "speed 1000x asked, 3x reached" where the machine cannot keep up.
std::string SpeedText(double asked, double reached);
// Whether it falls behind by more than measuring may be wrong.
bool FallsBehind(double asked, double reached);

// Characters of a column that says in which way each GPU is used; 0: all are cut by MIG, or not
// yet.
size_t WayColumn(const std::vector<GpuRow>& gpus);

// A whole frame: at most `size.lines` lines of at most `size.columns` characters, '\n' after each.
// `colour` adds ANSI colour sequences, which take no room.
std::string RenderFrame(const ViewModel& model, ViewSize size, bool colour);

// "node-1 gpu 0: +1g.5gb@1 +2g.10gb@2 for a/web and 3 more": at most `width` characters, and a
// sentence however many there are.
std::string DecisionText(const DecisionRow& row, size_t width);

// The slots of one GPU: "|train-1 3g.20gb         |1g.5gb  |··|". Each of its cells takes `cell`
// characters.
std::string RenderSlots(const GpuRow& gpu, size_t cell, bool colour);

}  // namespace nos::cmd
