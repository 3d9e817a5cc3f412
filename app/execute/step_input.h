// The input of a session's next step: control values, labels and images of each member (one of the
// trainings that the session runs together). load() sets what a batch brings, and the caller sets
// the rest. Values stay from step to step until they are changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/compile/step_options.h"
#include "app/execute/model_memory.h"
#include "data/loader/batch.h"

namespace convoy::app {

class Executor;

class StepInput {
 public:
  // Sets the seed and the hyperparameters of all members. Executor and memory must outlive this
  // object.
  StepInput(Executor& executor, const ModelMemory& memory, const StepOptions& options);

  // Makes `batch` the input of the given members; of all members if `members` is empty. Sets their
  // labels, images, how samples are mixed, and the control values valid, global_valid and
  // first_sample. The batch has as many rows as the network's batch (ModelMemory::capacity()). A
  // device may hold it until the step is finished. A step takes at most InputOptions::batches
  // different batches. If the device stores all images, `first_image` is the index of the first
  // image of the batch's split (training or test).
  //
  // The batch must have images if InputOptions::kind is `filled`, cuts if it is `streamed`, and
  // transforms if it is `resident` (data::BatchOutput); otherwise load() throws
  // std::invalid_argument. On a GPU with `filled`, the batch needs no images, because the caller
  // writes images(). Throws std::logic_error if read_images_of() has to be called first, or if more
  // than Session::steps_ahead() steps are in flight, because the oldest one may still read the
  // memory that the batch would get.
  void load(data::BatchLease batch, std::int64_t first_image = 0, std::span<const int> members = {});

  // The caller sets the control values step and learning_rate. With StepOptions::accumulate, a
  // batch may come in parts (StepKind::train_part). The caller then also sets part and share after
  // each load(), and adds the offset of the part in the batch to first_sample.
  kernels::StepControl& control(int member = 0);
  // Labels, one per row of the batch; -1 in a row without a label.
  std::span<std::int32_t> labels(int member = 0);
  // With InputOptions::Kind::filled, the images [N, C, H, W]. The caller may write them by
  // SessionTensors::write(). With other kinds, load() alone writes images.
  PersistentTensor images() const { return {"images", memory_.images_desc(), memory_.images()}; }

  // Makes the steps read the stored images of another session, which must outlive this one. Needed
  // before load() if the input is resident and InputOptions::resident_images is 0.
  void read_images_of(const StepInput& owner);

 private:
  Executor& executor_;
  const ModelMemory& memory_;
  const std::int64_t image_bytes_;  // bytes of one stored image
  std::vector<int> all_members_;
  // Bytes from this session's images to the images that it reads; no value until they are known.
  std::optional<std::int64_t> images_at_;
};

}  // namespace convoy::app
