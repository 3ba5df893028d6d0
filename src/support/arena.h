// Memory that lives as long as a conversion: bump allocation, freed at once, destructors not run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pt2onnx {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* Allocate(size_t bytes, size_t align) {
    uintptr_t at = (next_ + align - 1) & ~(uintptr_t{align} - 1);
    if (at + bytes > end_ || next_ == 0) {
      const size_t size = bytes + align > kBlock ? bytes + align : kBlock;
      blocks_.push_back(std::make_unique<std::byte[]>(size));
      next_ = reinterpret_cast<uintptr_t>(blocks_.back().get());
      end_ = next_ + size;
      at = (next_ + align - 1) & ~(uintptr_t{align} - 1);
    }
    next_ = at + bytes;
    return reinterpret_cast<void*>(at);
  }

  // T's destructor is never run: it may only hold what lives in the arena itself, or what outlives it.
  template <class T, class... Args>
  T* New(Args&&... args) {
    return new (Allocate(sizeof(T), alignof(T))) T{std::forward<Args>(args)...};
  }

  template <class Range>
  auto Copy(const Range& range) {
    using T = std::remove_cvref_t<decltype(*std::begin(range))>;
    static_assert(std::is_trivially_destructible_v<T>);
    const size_t n = std::size(range);
    T* out = static_cast<T*>(Allocate(sizeof(T) * (n ? n : 1), alignof(T)));
    size_t i = 0;
    for (const auto& x : range) new (out + i++) T(x);
    return std::span<T>(out, n);
  }

  std::string_view CopyText(std::string_view text) {
    char* out = static_cast<char*>(Allocate(text.size() + 1, 1));
    std::memcpy(out, text.data(), text.size());
    out[text.size()] = 0;
    return {out, text.size()};
  }

 private:
  static constexpr size_t kBlock = 1 << 16;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  uintptr_t next_ = 0, end_ = 0;
};

}  // namespace pt2onnx
