// Reads the labels of ImageNet's validation images from its development kit
// (ILSVRC2012_devkit_t12.tar.gz). data/ILSVRC2012_validation_ground_truth.txt holds a class number
// for each image. data/meta.mat maps class numbers to classes (WordNet IDs).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/convert/file_source.h"

namespace convoy::data {

bool is_imagenet_devkit(const Listing& listing);

// Returns the WordNet IDs of the validation images in the order of the images' names. Throws
// std::runtime_error that names the file.
std::vector<std::string> read_imagenet_devkit(const FileSource& source, const Listing& listing);

// Reads the struct array `synsets` of a MATLAB file of level 5 ("MAT-File Format", MathWorks).
// Returns a map from class numbers (ILSVRC2012_ID) to WordNet IDs (WNID). The text of a thrown
// std::runtime_error gives only the reason, without the file.
std::map<int, std::string> read_synsets(const Bytes& mat_file);

}  // namespace convoy::data
