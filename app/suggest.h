// Nearest names for a name that does not exist: flags, verbs, configuration keys, values, models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy::app {

// Insertions, deletions, replacements and swaps of neighbours that turn one into the other, case ignored
// (the optimal string alignment distance).
int edit_distance(std::string_view a, std::string_view b);

// The candidates that `name` was probably meant to be: within a third of its length (at least one edit, at
// most four; something of it must be left), or beginning with it. Nearest first, at most three.
std::vector<std::string> suggest(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean 'resnet18' or 'resnet34'?", or nothing when no candidate is near: to end an error with.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace convoy::app
