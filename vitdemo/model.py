"""The Vision Transformer of Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", equations (1) to (8).

    B images · C channels · P patch side · N patches · T tokens (prefix + N) · D width · H heads · d = D/H · L blocks · K classes

Parameters are named as in timm and DINO, so their state dicts load without renaming. The model attends with PyTorch's fused
`scaled_dot_product_attention`, which never forms the T x T weights, but where they are few (`attend`). Each block hands its queries
and keys back beside its output; `trace` keeps them, and `vitdemo.attention` turns them into weights for whoever wants to look. Nothing is stored on a
module in `forward`, and there are no hooks.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitdemo.config import ViTConfig

FEW_TOKENS = 128                                # over which attention on a CPU is written out while a model learns, see `attend`


class Trace(NamedTuple):
    """One pass of the model with what the views need: outside training, equal in every bit to a pass without it."""

    logits: Tensor                  # (B, K)
    tokens: Tensor                  # (B, T, D), what `encode` returns
    queries: tuple[Tensor, ...]     # L tensors (B, H, T, d)
    keys: tuple[Tensor, ...]        # L tensors (B, H, T, d)
    lens: Tensor                    # (B, L, K), the logits if the classifier read the image after each block: the last ones are `logits`


class Branches(NamedTuple):
    """One pass with what gradients of the attention weights need: sa = A v, so the gradient by A is that by sa, times v transposed."""

    logits: Tensor                  # (B, K)
    queries: tuple[Tensor, ...]     # L tensors (B, H, T, d), and so are the next two
    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    gathered: tuple[Tensor, ...]    # sa of equation (7), before the heads are joined


class Seen(NamedTuple):
    """What one block's attention worked with, each (B, H, T, d): queries, keys, values, and sa of equation (7)."""

    q: Tensor
    k: Tensor
    v: Tensor
    sa: Tensor


def patchify(images: Tensor, patch: tuple[int, int]) -> Tensor:
    """Cut `images` (B, C, height, width) into flat patches (B, N, C*P*P), row by row: the x_p of section 3.1.

    The pixels of one patch must end up side by side. Reshaping an image to (N, P*P*C) directly does not do that: it cuts
    horizontal strips. Hence the permutation between the two reshapes.
    """
    B, C, height, width = images.shape
    P, Q = patch
    x = images.reshape(B, C, height // P, P, width // Q, Q)                 # (B, C, rows, P, cols, Q)
    return x.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)             # (B, N, C*P*Q)


def sinusoidal_positions(tokens: int, dim: int) -> Tensor:
    """The fixed positions of Vaswani et al. 2017, section 3.5, as a table (1, tokens, dim): sine in even columns, cosine in odd."""
    angle = torch.arange(tokens)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)      # (tokens, dim/2)
    return torch.stack((angle.sin(), angle.cos()), dim=2).flatten(1)[None]


def resize_positions(pos_embed: Tensor, old: tuple[int, int], new: tuple[int, int]) -> Tensor:
    """Learned positions for another grid (section 3.2, fine-tuning at higher resolution).

    `pos_embed` is (1, prefix + N, D) for the grid `old` (rows, cols). The rows of the prefix tokens stay as they are; those of the
    patches are resampled in 2-D (bicubic, antialiased) to the grid `new`.
    """
    if old == new:
        return pos_embed
    prefix = pos_embed.shape[1] - old[0] * old[1]
    plane = pos_embed[:, prefix:].unflatten(1, old).permute(0, 3, 1, 2)     # (1, D, rows, cols)
    plane = F.interpolate(plane.float(), size=new, mode="bicubic", antialias=True).to(pos_embed.dtype)
    return torch.cat((pos_embed[:, :prefix], plane.flatten(2).transpose(1, 2)), dim=1)


class PatchEmbed(nn.Module):
    """x_p E of equation (1): each patch, flattened, through one linear layer.

    A convolution whose stride is its kernel does the same in one call. Both ways read the same weight, so a checkpoint does not
    depend on which is chosen.
    """

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.as_linear = config.patchify == "linear"
        self.proj = nn.Conv2d(config.channels, config.dim, kernel_size=config.patch, stride=config.patch)

    def forward(self, images: Tensor) -> Tensor:
        if self.as_linear:
            return F.linear(patchify(images, self.proj.kernel_size), self.proj.weight.flatten(1), self.proj.bias)
        return self.proj(images).flatten(2).transpose(1, 2)                 # (B, D, rows, cols) -> (B, N, D)


def attend(q: Tensor, k: Tensor, v: Tensor, *, learning: bool = False) -> Tensor:
    """softmax(q k^T / sqrt(d)) v, equations (6) and (7), for keys and values (B, H, T, d) and the queries of all tokens or the first few.

    In one fused step, which never holds the T x T weights; but written out over few tokens on a CPU, while a model learns, where it is as
    fast, and in bfloat16, where it is several times as fast (tests/benchmarks/limits.py).
    """
    if q.device.type != "cpu" or k.shape[2] > FEW_TOKENS or not (learning or q.dtype == torch.bfloat16):
        return F.scaled_dot_product_attention(q, k, v)
    with torch.autocast("cpu", enabled=False):                              # which would take the weights to float32 and back
        return (q * q.shape[3] ** -0.5 @ k.transpose(2, 3)).softmax(3) @ v


class Attention(nn.Module):
    """Multi-head self-attention, MSA of equation (2); appendix A, equations (5) to (8)."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.dim, 3 * config.dim, bias=config.qkv_bias)
        self.proj = nn.Linear(config.dim, config.dim)

    def forward(self, z: Tensor, read: int | None = None) -> tuple[Tensor, Seen]:
        """Tokens (B, T, D) to what they, or the first `read` of them, gathered (B, T or read, D), and what decided it."""
        B, T, D = z.shape
        if read is None:
            q, k, v = self.qkv(z).view(B, T, 3, self.heads, D // self.heads).permute(2, 0, 3, 1, 4)     # (5) each (B, H, T, d)
        else:                                                               # the same layer in two parts, the queries' for few tokens only
            (w_q, w_kv), (b_q, b_kv) = (x.split((D, 2 * D)) if x is not None else (None, None) for x in (self.qkv.weight, self.qkv.bias))
            q = F.linear(z[:, :read], w_q, b_q).unflatten(2, (self.heads, -1)).transpose(1, 2)
            k, v = F.linear(z, w_kv, b_kv).view(B, T, 2, self.heads, D // self.heads).permute(2, 0, 3, 1, 4)
        sa = attend(q, k, v, learning=self.training and q.requires_grad)    # (6), (7)
        return self.proj(sa.transpose(1, 2).flatten(2)), Seen(q, k, v, sa)                          # (8) heads side by side, then U_msa


class MLP(nn.Module):
    """Two layers with a GELU between, applied to every token alike (section 3.1)."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.fc1 = nn.Linear(config.dim, config.mlp_width)
        self.fc2 = nn.Linear(config.mlp_width, config.dim)

    def forward(self, z: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(z)))


class LayerScale(nn.Module):
    """One learned factor per channel on a branch's output (Touvron et al. 2021, "Going deeper"); DINOv2 uses it."""

    def __init__(self, dim: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((dim,), 1e-5))

    def forward(self, z: Tensor) -> Tensor:
        return z * self.gamma


class Block(nn.Module):
    """One encoder block with its norms in front of the branches (pre-norm): equations (2) and (3)."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.norm1 = nn.LayerNorm(config.dim, eps=config.eps)
        self.attn = Attention(config)
        self.ls1 = LayerScale(config.dim) if config.layer_scale else nn.Identity()
        self.norm2 = nn.LayerNorm(config.dim, eps=config.eps)
        self.mlp = MLP(config)
        self.ls2 = LayerScale(config.dim) if config.layer_scale else nn.Identity()

    def forward(self, z: Tensor, read: int | None = None) -> tuple[Tensor, Seen]:
        """Tokens (B, T, D) to what becomes of them, or of the first `read` of them, and what decided it."""
        branch, seen = self.attn(self.norm1(z), read)
        z = z[:, :read] + self.ls1(branch)                                  # (2)
        z = z + self.ls2(self.mlp(self.norm2(z)))                           # (3)
        return z, seen


class ViT(nn.Module):
    """A Vision Transformer as `config` describes it, with random weights drawn from `generator`.

    `model(images)` gives logits (B, K), `model.encode(images)` the hidden states (B, T, D) for another model to read, and
    `model.trace(images)` both with every block's queries and keys. Images are float (B, C, height, width), normalised; the
    height and width may differ from the configured ones as long as they are multiples of the patch. Whoever wants to change the
    tokens on the way (drop some, leave the positions out) takes the steps apart: `classify(transform(embed(images)))` is `model(images)`,
    and `follow` and `branches` are `trace` and its differentiable sister from embedded tokens on.
    """

    def __init__(self, config: ViTConfig, generator: torch.Generator | None = None):
        super().__init__()
        self.config = config
        self.patch_embed = PatchEmbed(config)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, config.dim)) if config.class_token else None
        self.dist_token = nn.Parameter(torch.zeros(1, 1, config.dim)) if config.distilled else None
        self.reg_token = nn.Parameter(torch.zeros(1, config.registers, config.dim)) if config.registers else None
        positions = config.position_rows + config.patches
        if config.positions == "learned":
            self.pos_embed = nn.Parameter(torch.zeros(1, positions, config.dim))            # E_pos of equation (1)
        elif config.positions == "sinusoidal":
            self.register_buffer("pos_embed", sinusoidal_positions(positions, config.dim))
        else:
            self.pos_embed = None
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.dim, eps=config.eps) if config.norm_at == "tokens" else nn.Identity()
        self.fc_norm = nn.LayerNorm(config.dim, eps=config.eps) if config.norm_at == "pooled" else nn.Identity()
        self.pre_logits = nn.Linear(config.dim, config.dim) if config.head == "mlp" else None
        width = 2 * config.dim if config.head == "both" else config.dim
        self.head = nn.Linear(width, config.classes) if config.classes else None
        self.head_dist = nn.Linear(config.dim, config.classes) if config.classes and config.distilled else None
        initialise(self, generator)

    def embed(self, images: Tensor, *, positions: bool = True) -> Tensor:
        """z_0 of equation (1): prefix tokens and embedded patches, with positions unless they are to be left out.
        (B, C, height, width) -> (B, T, D)."""
        grid = self._grid(images)
        z = self.patch_embed(images)                                        # (B, N, D)
        prefix = [t.expand(len(z), -1, -1) for t in (self.cls_token, self.dist_token, self.reg_token) if t is not None]
        if self.pos_embed is None or not positions:
            return torch.cat((*prefix, z), dim=1)
        p_rows = resize_positions(self.pos_embed, self.config.grid, grid)
        rows = self.config.position_rows                                    # DINOv2's registers, for one, have no position
        if rows == self.config.prefix:
            return torch.cat((*prefix, z), dim=1) + p_rows
        p = torch.cat(prefix, dim=1)
        return torch.cat((p[:, :rows] + p_rows[:, :rows], p[:, rows:], z + p_rows[:, rows:]), dim=1)

    def transform(self, z: Tensor, *, read: int | None = None) -> Tensor:
        """Equations (2) and (3), block after block, and the last norm: embedded tokens (B, T, D) -> hidden states (B, T, D), or those of
        the first `read` tokens alone, which spares the last block the others."""
        *earlier, last = self.blocks
        for block in earlier:
            z, _ = block(z)
        z, _ = last(z, read)
        return self.norm(z)

    def encode(self, images: Tensor) -> Tensor:
        """The hidden states (B, T, D) after the last block and its norm; prefix tokens come first (`config.prefix` of them)."""
        return self.transform(self.embed(images))

    def forward(self, images: Tensor) -> Tensor:
        read = self._read if self.training else None                        # outside training logits are those of `trace`, to the bit
        return self.classify(self.transform(self.embed(images), read=read))

    def trace(self, images: Tensor) -> Trace:
        """The same pass as `forward`, with what it saw on the way."""
        return self.follow(self.embed(images))

    def follow(self, z: Tensor) -> Trace:
        """`trace` from embedded tokens (B, T, D) on."""
        queries, keys, lens = [], [], []
        for block in self.blocks:
            if queries:                                                     # after the block before; after the last one it reads `tokens`
                lens.append(self.classify(self.norm(z[:, :self._read])))
            z, seen = block(z)
            queries.append(seen.q)
            keys.append(seen.k)
        tokens = self.norm(z)
        logits = self.classify(tokens)
        return Trace(logits, tokens, tuple(queries), tuple(keys), torch.stack((*lens, logits), dim=1))

    def branches(self, z: Tensor) -> Branches:
        """The same pass once more, keeping what a gradient by the attention weights needs; call it where gradients are enabled."""
        seen = []
        for block in self.blocks:
            z, one = block(z)
            seen.append(one)
        return Branches(self.classify(self.norm(z)), *zip(*seen, strict=True))

    def classify(self, tokens: Tensor) -> Tensor:
        """Logits (B, K) from hidden states (B, T, D): the image's y of equation (4) through the head. K is 0 without a head."""
        y = tokens[:, 0] if self.config.pool == "cls" else tokens[:, self.config.prefix:].mean(dim=1)     # (4)
        y = self.fc_norm(y)
        if self.pre_logits is not None:
            y = torch.tanh(self.pre_logits(y))
        if self.config.head == "both":                                      # DINOv2's classifier: what all patches say stands beside
            y = torch.cat((y, tokens[:, self.config.prefix:].mean(dim=1)), dim=-1)
        if self.head is None:
            return y.new_zeros(len(y), 0)
        if self.head_dist is not None:                                      # DeiT: the mean of both heads' opinions
            return (self.head(y) + self.head_dist(tokens[:, 1])) / 2
        return self.head(y)

    @property
    def _read(self) -> int | None:
        """How many tokens, from the first, the classifier reads; None for all of them."""
        return self.config.prefix if self.config.pool == "cls" and self.config.head != "both" else None

    def _grid(self, images: Tensor) -> tuple[int, int]:
        channels, (height, width), patch = self.config.channels, images.shape[-2:], self.config.patch
        if images.ndim != 4 or images.shape[1] != channels or not height or not width or height % patch[0] or width % patch[1]:
            raise ValueError(f"the model takes images (batch, {channels}, height, width) with sides that are multiples of the patch "
                             f"{patch}, not {tuple(images.shape)}")
        return height // patch[0], width // patch[1]


@torch.no_grad()
def initialise(model: ViT, generator: torch.Generator | None = None) -> None:
    """Draw all weights afresh. The patch projection like a linear layer (LeCun normal), biases zero, all else from a normal of deviation
    0.02 cut at two deviations (BERT, DeiT); with `init="xavier"` the matrices by Glorot and Bengio's uniform rule, as in the authors' code,
    which small widths need: 0.02 hardly moves a token of 8 numbers."""
    for name, tensor in model.named_parameters():
        if name.endswith("gamma") or "norm" in name and name.endswith("weight"):
            continue                                                        # their constructors set them
        if name.endswith("bias"):
            tensor.zero_()
        elif model.config.init == "xavier" and tensor.ndim == 2:
            nn.init.xavier_uniform_(tensor, generator=generator)
        else:
            std = tensor[0].numel() ** -0.5 if name == "patch_embed.proj.weight" else 0.02
            nn.init.trunc_normal_(tensor, std=std, a=-2 * std, b=2 * std, generator=generator)
