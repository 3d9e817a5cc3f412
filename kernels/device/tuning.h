// Keeps, in a JSON file of {key: choice}, which of several kernels was measured to be the fastest.
// A key names device, operation, shape and types; a choice is the name of a kernel. Choices decide
// the bits of results. So a run that must repeat another run uses that run's file and measures
// nothing.
//
// The functions that make kernels (kernel.h) measure before the first step, because measuring
// allocates and synchronises. Without a file, they choose the kernel that they expect to be the
// fastest. Only one thread at a time may use the functions below.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace convoy::kernels::tuning {

enum class Mode {
  read,     // makers do not measure; if the file has no entry, they choose by expectation
  measure,  // makers measure if the file has no entry, and keep the result
};

// Makes find() and measures() use this file. In mode `measure` the file may be missing. Throws
// std::runtime_error, with the file's name, if the file cannot be read.
void use(const std::filesystem::path& file, Mode mode);
void stop();

std::optional<std::string> find(const std::string& key);
bool measures();
void keep(const std::string& key, const std::string& choice);
// Merges the results since the last save with those that other processes have written meanwhile.
// Writes all of them to a new file, which replaces the old one.
void save();

}  // namespace convoy::kernels::tuning
