// A value that is stored once however often it occurs: the devices of a cluster repeat a few
// hundred names, attribute sets and counter consumptions millions of times. A handle has the size
// of a pointer; equal values have equal handles, so comparing two is comparing two pointers.
//
//   Name a("memory-slice-0"), b("memory-slice-0");   // a == b, one string
//
// The last handle frees the value. Thread-safe, like shared_ptr.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace nos::dra {

// REQUIRES: T has operator== and Hash is defined for it.
template <typename T, typename Hash = std::hash<T>>
class Interned {
 public:
  Interned() = default;  // the same as the handle of an empty value
  explicit Interned(T value) : entry_(value == T() ? nullptr : Acquire(std::move(value))) {}
  Interned(const Interned& other) : entry_(other.entry_) {
    if (entry_ != nullptr) entry_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  Interned(Interned&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  Interned& operator=(Interned other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~Interned() { Release(entry_); }

  const T& operator*() const { return entry_ == nullptr ? Empty() : entry_->value; }
  const T* operator->() const { return &**this; }
  // The same for equal values while one of them exists.
  const void* id() const { return entry_; }

  friend bool operator==(const Interned& a, const Interned& b) { return a.entry_ == b.entry_; }

 private:
  struct Entry {
    T value;
    size_t hash = 0;
    std::atomic<size_t> holders = 0;
  };
  struct EntryHash {
    size_t operator()(const Entry* entry) const { return entry->hash; }
  };
  struct SameValue {
    bool operator()(const Entry* a, const Entry* b) const {
      return a == b || (a->hash == b->hash && a->value == b->value);
    }
  };
  struct Table {
    std::mutex mutex;
    std::unordered_set<Entry*, EntryHash, SameValue> entries;
  };

  static const T& Empty() {
    static const T empty;
    return empty;
  }
  // Never destroyed: handles in static objects may outlive it otherwise.
  static Table& Shared() {
    static auto* const table = new Table;
    return *table;
  }
  static Entry* Acquire(T value) {
    Entry wanted{std::move(value)};
    wanted.hash = Hash()(wanted.value);
    Table& table = Shared();
    const std::lock_guard lock(table.mutex);
    auto found = table.entries.find(&wanted);
    if (found == table.entries.end()) {
      found = table.entries.insert(new Entry{std::move(wanted.value), wanted.hash}).first;
    }
    (*found)->holders.fetch_add(1, std::memory_order_relaxed);
    return *found;
  }
  // The number of holders reaches 0 only under the lock, so a handle from the table never revives
  // an entry that another thread is freeing.
  static void Release(Entry* entry) {
    if (entry == nullptr) return;
    size_t holders = entry->holders.load(std::memory_order_relaxed);
    while (holders > 1) {
      if (entry->holders.compare_exchange_weak(holders, holders - 1, std::memory_order_acq_rel)) {
        return;
      }
    }
    Table& table = Shared();
    const std::lock_guard lock(table.mutex);
    if (entry->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    table.entries.erase(entry);
    delete entry;
  }

  Entry* entry_ = nullptr;
};

// A name: of a driver, pool, device, attribute, counter. Ordered by its text.
class Name {
 public:
  Name() = default;
  explicit Name(std::string_view text) : text_(std::string(text)) {}
  const std::string& str() const { return *text_; }
  bool empty() const { return text_->empty(); }
  const void* id() const { return text_.id(); }
  friend bool operator==(const Name&, const Name&) = default;
  friend std::strong_ordering operator<=>(const Name& a, const Name& b) {
    return a == b ? std::strong_ordering::equal : a.str() <=> b.str();
  }

 private:
  Interned<std::string> text_;
};

// Mixes a further hash into `seed` (Boost's hash_combine with a 64-bit constant).
inline void AddHash(size_t& seed, size_t hash) {
  seed ^= hash + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
}

}  // namespace nos::dra

template <>
struct std::hash<nos::dra::Name> {
  size_t operator()(const nos::dra::Name& name) const {
    return std::hash<const void*>()(name.id());
  }
};
