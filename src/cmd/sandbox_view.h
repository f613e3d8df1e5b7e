// Live view of the sandbox as text: GPUs as rows of slots, pending pods with reasons, and
// decisions. Pure functions from a model to a frame; the caller owns the terminal.
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
  int slots = 8;                // placement slots; for a GPU shared by memory, GiB
  std::vector<SlotSpan> spans;  // sorted by start, not overlapping
  bool changing = false;        // the agent is repartitioning it
  bool by_memory = false;
  // Sharing mode ("MPS"). On GPUs that support modes other than MIG, "free" while the GPU is
  // unused.
  std::string sharing_mode{};

  // Width of the row in characters is cells() times the width of one slot.
  size_t cells() const { return by_memory ? 8 : static_cast<size_t>(slots); }
};

// Shares of GPU memory have no position. Places them one after another, sorted by their current
// start.
void LayOut(std::vector<SlotSpan>& shares);

struct WaitingRow {
  std::string pod, asks, why;
  Duration age{};
  std::string remedy{};  // shown if the frame has enough lines
};

struct DecisionRow {
  Duration at{};     // since the sandbox started
  std::string text;  // a sentence
};

// A pool whose nodes are created and deleted at run time.
struct PoolRow {
  std::string name;
  int nodes = 0, coming = 0, going = 0;
  int min = 0, max = 0;
  double cost = 0;  // accumulated since the start
};

// Use of an elastic quota, of one resource.
struct QuotaRow {
  std::string name, resource;       // "research", "gpu-memory"
  std::string used, min, borrowed;  // amounts; `borrowed` is "" for none
};

struct ViewModel {
  Duration elapsed{};             // virtual time
  double speed = 1, reached = 1;  // requested speed, and speed reached in the last seconds
  int running = 0, finished = 0;
  std::vector<GpuRow> gpus;
  std::vector<WaitingRow> waiting;
  std::vector<DecisionRow> decisions;  // oldest first
  std::string hint;                    // the command to try next
  std::vector<PoolRow> pools{};
  std::vector<QuotaRow> quotas{};
  size_t first_gpu = 0;  // the user has scrolled to it
  bool keys = false;     // keys are read
  bool help = false;     // the user wants to know which
};

struct ViewSize {
  size_t columns = 100, lines = 40;
};

// "speed 5x", or "speed 1000x asked, 3x reached" if the machine is too slow.
std::string SpeedText(double asked, double reached);
// True if the speed reached is below the requested one by more than the measurement error.
bool FallsBehind(double asked, double reached);

// Width in characters of the column with the sharing mode of each GPU. 0 if every GPU is used by
// MIG or not partitioned yet.
size_t ModeColumn(const std::vector<GpuRow>& gpus);

// A whole frame: at most `size.lines` lines of at most `size.columns` characters, each followed by
// '\n'. `colour` adds ANSI colour sequences, which take no columns.
std::string RenderFrame(const ViewModel& model, ViewSize size, bool colour);

// The slots of one GPU: "|train-1 3g.20gb         |1g.5gb  |··|". Each cell takes `cell`
// characters.
std::string RenderSlots(const GpuRow& gpu, size_t cell, bool colour);

}  // namespace nos::cmd
