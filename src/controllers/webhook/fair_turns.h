// One caller at a time has the turn. Groups of callers take turns, so that callers of a group with
// many wait for each other, and those of any other group for no more than one of them. If all
// places are taken, a caller takes that of the last one who waits of the group with most, unless
// its own group has as many.
//
//   FairTurns turns(12, 4);
//   const auto turn = turns.Take(ns);
//   if (turn == nullptr) refuse;
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace nos::controllers {

class FairTurns {
 public:
  // Maximum number of callers that have the turn or wait for it, in total and of one group.
  FairTurns(size_t most, size_t max_of_one) : most_(most), max_of_one_(max_of_one) {}

  // Ends the turn.
  class Turn {
   public:
    Turn(FairTurns& of, std::string group) : of_(of), group_(std::move(group)) {}
    ~Turn() { of_.End(group_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    FairTurns& of_;
    const std::string group_;
  };
  // Waits for the turn. Null: too many callers, now or while it waited.
  std::unique_ptr<Turn> Take(const std::string& group);
  // The number of callers that have the turn or wait for it.
  size_t inside() const;

 private:
  struct Waiter {
    std::condition_variable called;
    bool has_turn = false, gives_way = false;
  };
  struct Group {
    size_t inside = 0;
    std::deque<Waiter*> waiting;  // in the order of arrival
  };

  // True if another caller gave way to one of this group.
  bool Displace(const std::string& group);
  void Leave(const std::string& group);
  void End(const std::string& group);
  void CallNext(const std::string& after);

  const size_t most_, max_of_one_;
  mutable std::mutex mutex_;
  size_t inside_ = 0;
  bool taken_ = false;
  std::map<std::string, Group> groups_;  // those with callers
};

}  // namespace nos::controllers
