#!/usr/bin/env python3
"""Checks that sources include the standard headers of what they use, directly or through this project's headers.

Other standard headers bring some of them along, but which ones differs from compiler to compiler.
Prints a line for each missing header and exits with 1 if there are any.
"""
import pathlib
import re
import subprocess
import sys

USES = {
    "algorithm": r"std::(ranges::)?(all_of|any_of|none_of|copy|copy_n|copy_if|count|count_if|equal|fill|fill_n|find|find_if"
                 r"|find_if_not|for_each|generate|is_sorted|lexicographical_compare|lower_bound|upper_bound|max|min|minmax"
                 r"|max_element|min_element|mismatch|clamp|nth_element|partial_sort|partition|remove_if|replace|reverse|rotate"
                 r"|search|shuffle|sort|stable_sort|swap_ranges|transform|unique|adjacent_find|binary_search|equal_range"
                 r"|push_heap|pop_heap|make_heap|set_difference|includes|merge|next_permutation)\s*[(<]",
    "numeric": r"std::(accumulate|iota|inner_product|reduce|gcd|lcm|midpoint|partial_sum|exclusive_scan|inclusive_scan)\s*[(<]",
    "cmath": r"std::(sqrt|exp|log|log2|log10|pow|floor|ceil|round|lround|llround|isnan|isfinite|isinf|fabs|cos|sin|tanh|erf|fma"
             r"|ldexp|frexp|hypot|cbrt|trunc|nextafter|copysign)\s*\(",
    "cstring": r"std::(memcpy|memset|memmove|memcmp|strlen|strcmp|strerror|strncmp)\s*\(",
    "array": r"std::(array\s*[<{(]|array\b)",
    "atomic": r"std::atomic\b",
    "bit": r"std::(bit_cast|bit_width|bit_ceil|countr_zero|popcount|has_single_bit|endian)\b",
    "chrono": r"std::chrono::",
    "condition_variable": r"std::condition_variable\b",
    "cstdlib": r"std::(getenv|abort|exit|quick_exit|at_quick_exit|atexit|strtol|strtod|_Exit)\s*\(",
    "deque": r"std::deque\b",
    "filesystem": r"std::filesystem::",
    "fstream": r"std::[io]?fstream\b",
    "functional": r"std::(function|hash|greater|less|plus)\b",
    "limits": r"std::numeric_limits\b",
    "map": r"std::(multi)?map\b",
    "memory": r"std::(unique_ptr|shared_ptr|make_unique|make_shared|weak_ptr|addressof)\b",
    "mutex": r"std::(mutex|lock_guard|unique_lock|scoped_lock|call_once|once_flag)\b",
    "numbers": r"std::numbers::",
    "optional": r"std::(optional|nullopt)\b",
    "random": r"std::(mt19937(_64)?|uniform_(int|real)_distribution|normal_distribution)\b",
    "set": r"std::(multi)?set\b",
    "span": r"std::span\b",
    "sstream": r"std::[io]?stringstream\b",
    "stdexcept": r"std::(runtime_error|logic_error|invalid_argument|out_of_range|domain_error|length_error)\b",
    "string_view": r"std::string_view\b",
    "thread": r"std::(thread|jthread|this_thread)\b",
    "unordered_map": r"std::unordered_map\b",
    "unordered_set": r"std::unordered_set\b",
    "variant": r"std::(variant|visit|holds_alternative|get_if|monostate)\b",
    "vector": r"std::vector\b",
}
# The headers on the right bring the one on the left along in every standard library.
ALSO = {"string_view": {"string"}, "cmath": {"complex", "random"}}


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    names = subprocess.run(["git", "ls-files", "*.cpp", "*.h", "*.cu", "*.cuh"], cwd=root, capture_output=True, text=True,
                           check=True).stdout.split()
    text = {name: re.sub(r"//.*", "", (root / name).read_text()) for name in names}
    direct = {name: re.findall(r'#include [<"]([^>"]+)[>"]', content) for name, content in text.items()}
    reached = {}

    def headers(name, trail=()):
        if name not in reached:
            found = set()
            for header in direct.get(name, ()):
                found.add(header)
                if header in text and header not in trail:
                    found |= headers(header, (*trail, name))
            if trail:
                return found
            reached[name] = found
        return reached[name]

    missing = []
    for name in names:
        for header, pattern in USES.items():
            if header in headers(name) or ALSO.get(header, set()) & headers(name):
                continue
            use = re.search(pattern, text[name])
            if use:
                line = text[name].count("\n", 0, use.start()) + 1
                missing.append(f"{name}:{line}: {use.group(0).rstrip('(<{ ')} without #include <{header}>")
    print("\n".join(missing), end="\n" if missing else "")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
