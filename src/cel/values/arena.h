// Memory for the values of one evaluation, or for the constants of a program or a device: released
// at once, without destructors. The limit bounds what a hostile expression can use.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace nos::cel {

class Arena {
 public:
  explicit Arena(size_t limit = size_t{64} << 20) : limit_(limit) {}
  Arena(Arena&&) = default;
  Arena& operator=(Arena&&) = default;

  // Throws Cancelled beyond the limit.
  void* Allocate(size_t bytes) {
    bytes = (bytes + 7) & ~size_t{7};
    if (bytes > static_cast<size_t>(end_ - next_)) Grow(bytes);
    char* const result = next_;
    next_ += bytes;
    return result;
  }

  template <typename T, typename... Args>
  T* New(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (Allocate(sizeof(T))) T{std::forward<Args>(args)...};
  }

  template <typename T>
  std::span<T> NewArray(size_t size) {
    static_assert(std::is_trivially_destructible_v<T>);
    return {new (Allocate(size * sizeof(T))) T[size], size};
  }

  std::string_view Copy(std::string_view text) {
    char* const copy = static_cast<char*>(Allocate(text.size()));
    if (!text.empty()) std::memcpy(copy, text.data(), text.size());
    return {copy, text.size()};
  }

  // Forgets everything, and keeps one block for the next use.
  void Reset();

 private:
  void Grow(size_t bytes);

  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
  };
  std::vector<Block> blocks_;
  size_t used_ = 0;  // the sizes of all blocks
  size_t limit_;
  char* next_ = nullptr;
  char* end_ = nullptr;
};

}  // namespace nos::cel
