// A check that also counts in programs compiled with NDEBUG.
#include <cstdio>
#include <cstdlib>
#include <string>

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);         \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (false)

inline void CheckText(const std::string& found, const std::string& expected, const char* file, int line) {
  if (found == expected) return;
  std::fprintf(stderr, "%s:%d: found\n  %s\nexpected\n  %s\n", file, line, found.c_str(), expected.c_str());
  std::exit(1);
}
#define CHECK_TEXT(found, expected) CheckText(found, expected, __FILE__, __LINE__)
