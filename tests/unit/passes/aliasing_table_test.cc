// Every op that views or writes, by the schema table: it has a rule, or stands here with the reason why it is refused.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "ir/op_table.h"
#include "rewrite/call_args.h"

namespace pt2onnx {
namespace {

// What writes without an out-of-place form. Each ends in E0202 where the write is seen.
const std::map<std::string_view, std::string_view> kRefusedWrites = {
    {"_native::linalg_polar_out_native_3", "kernel of one build"},
    {"aten::_fill_mem_eff_dropout_mask_", "kernel of one device"},
    {"aten::_flash_attention_forward_no_dropout_inplace", "kernel of one device"},
    {"aten::_slow_conv2d_backward.grad_input", "part of a gradient"},
    {"aten::_sobol_engine_ff_", "state of a sampling engine"},
    {"aten::_sobol_engine_initialize_state_", "state of a sampling engine"},
    {"aten::_sobol_engine_scramble_", "state of a sampling engine"},
    {"aten::adaptive_avg_pool3d_backward.grad_input", "part of a gradient"},
    {"aten::batch_norm_gather_stats", "statistics of several devices"},
    {"aten::batch_norm_gather_stats_with_counts", "statistics of several devices"},
    {"aten::batch_norm_update_stats", "kernel of one device"},
    {"aten::fbgemm_linear_fp16_weight.out", "packed weights"},
    {"aten::fbgemm_linear_fp16_weight_fp32_activation.out", "packed weights"},
    {"aten::fused_moving_avg_obs_fake_quant", "its functional form is another op: fused_moving_avg_obs_fq_helper"},
    {"aten::set_data", "swaps the memory of a parameter"},
    {"aten::shallow_copy_data_", "swaps the memory of a tensor"},
};
constexpr std::string_view kForeign[] = {"fsdp::", "inductor::", "onednn::", "quantized::", "symm_mem::"};  // not captured by torch.export
// Handled by passes/out_of_place and functionalize_geometry.
constexpr std::string_view kByHand[] = {"aten::_batch_norm_impl_index", "aten::batch_norm", "aten::cudnn_batch_norm", "aten::fill_diagonal_", "aten::instance_norm",
                                        "aten::miopen_batch_norm", "aten::native_batch_norm", "aten::record_stream", "aten::retain_grad",
                                        "aten::set_.source_Tensor_storage_offset"};
// Views that no strided tensor has, and views of PyTorch's insides: refused by name where they are lowered.
const std::map<std::string_view, std::string_view> kRefusedViews = {
    {"aten::_unpack_dual", "forward-mode gradients"}, {"static_runtime::select_tensor", "another runtime"}, {"aten::slice_inverse", "inside PyTorch's own functionalization"}};

TEST(AliasingTable, EveryWritingOpHasAnOutOfPlaceFormOrAReason) {
  size_t writers = 0;
  for (const OpSchema& op : OpTable()) {
    if (!op.Writes()) continue;
    ++writers;
    const bool foreign = std::any_of(std::begin(kForeign), std::end(kForeign), [&](std::string_view ns) { return op.name.starts_with(ns); });
    const bool handled = op.functional >= 0 || In(op.name, kByHand);
    if (foreign) continue;
    EXPECT_NE(handled, kRefusedWrites.contains(op.name)) << op.name << (handled ? " is handled: take it off the list" : " has no out-of-place form");
    if (op.functional < 0) continue;
    const OpSchema& form = OpTable()[static_cast<size_t>(op.functional)];
    EXPECT_FALSE(form.Writes() && !form.Has(kHiddenWrite)) << op.name << ": its out-of-place form " << form.name << " writes";
  }
  EXPECT_GT(writers, 1400u);
}

TEST(AliasingTable, EveryViewHasAClassWithARuleOrAReason) {
  size_t views = 0;
  for (const OpSchema& op : OpTable()) {
    if (op.view == ViewClass::None) continue;
    ++views;
    const bool ruled = op.view != ViewClass::Sparse && op.view != ViewClass::Nested && op.view != ViewClass::Other && op.view != ViewClass::SliceInverse;
    const bool listed = op.view == ViewClass::Sparse || op.view == ViewClass::Nested || kRefusedViews.contains(op.name);
    EXPECT_NE(ruled, listed) << op.name;
  }
  EXPECT_GT(views, 90u);
}

TEST(AliasingTable, EveryChangeOfGeometryIsKnown) {
  for (const OpSchema& op : OpTable()) {
    if (!op.Has(kInplaceView)) continue;
    const std::string_view base = BaseName(op);
    if (base == "aten::set_" || base == "aten::resize_" || base == "aten::resize_as_") continue;  // by hand
    ASSERT_GE(op.functional, 0) << op.name;
    EXPECT_NE(OpTable()[static_cast<size_t>(op.functional)].view, ViewClass::None) << op.name;
  }
}

TEST(AliasingTable, EveryHiddenAliasIsKnown) {
  constexpr std::string_view kKnown[] = {"aten::_unsafe_view", "aten::alpha_dropout", "aten::atleast_1d", "aten::atleast_2d", "aten::atleast_3d", "aten::broadcast_tensors",
                                         "aten::cartesian_prod", "aten::conj_physical", "aten::dropout", "aten::einsum", "aten::feature_alpha_dropout", "aten::feature_dropout",
                                         "aten::histogramdd", "aten::meshgrid", "aten::unsafe_chunk", "aten::unsafe_split", "aten::unsafe_split_with_sizes"};
  for (const OpSchema& op : OpTable())
    EXPECT_TRUE(!op.Has(kHiddenAlias) || In(BaseName(op), kKnown)) << op.name << " aliases without saying so, and Functionalize does not know it";
}

}  // namespace
}  // namespace pt2onnx
