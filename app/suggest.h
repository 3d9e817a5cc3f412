// Finds names that are near a wrong one: flags, verbs, keys, values, models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy::app {

// Counts the insertions, deletions, replacements and swaps of neighbours that turn one into the
// other, without regard to case (the optimal string alignment distance).
int edit_distance(std::string_view a, std::string_view b);

// Returns at most three candidates, nearest first, that begin with `name` or differ from it by at
// most a third of its length, one to four edits.
std::vector<std::string> suggest(std::string_view name, const std::vector<std::string>& candidates);

// Returns the end of a message, "; did you mean 'resnet18' or 'resnet34'?", or nothing if no
// candidate is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace convoy::app
