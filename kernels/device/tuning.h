// Which of several kernels was measured fastest, kept from run to run: a JSON file of {key: choice}, a key naming device,
// operation, shape and types, a choice one of the candidates' names. What is chosen decides the bits of the results, so
// a run that must repeat another's takes its file and measures nothing.
//
// Off until a file is named; makers then take what they expect to be fastest. Measuring allocates and synchronises: it
// belongs into the makers, before the first step. Not for several threads at once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace convoy::kernels::tuning {

enum class Mode {
  read,     // what the file does not hold stays a matter of expectation
  measure,  // what it does not hold is measured, and kept
};

// From now on: the file's choices, if there is one; to read there must be. Throws std::runtime_error that names a file that
// cannot be read.
void use(const std::filesystem::path& file, Mode mode);
void stop();

std::optional<std::string> find(const std::string& key);
bool measures();
void keep(const std::string& key, const std::string& choice);
// Writes what was kept since, with what others have written meanwhile; beside the file, synced and renamed.
void save();

}  // namespace convoy::kernels::tuning
