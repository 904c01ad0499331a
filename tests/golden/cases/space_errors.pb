
6
PlaceholderPlaceholder*
shape:*
dtype0
:
Placeholder_1Placeholder*
shape:*
dtype0
8
Placeholder_2Placeholder*
shape:*
dtype0
y
SpaceToBatchNDSpaceToBatchNDPlaceholderPlaceholder_1Placeholder_2*
	Tpaddings0*
Tblock_shape0*
T0
:
Placeholder_3Placeholder*
shape:*
dtype0
8
Placeholder_4Placeholder*
shape:*
dtype0
{
SpaceToBatchND_1SpaceToBatchNDPlaceholderPlaceholder_3Placeholder_4*
	Tpaddings0*
Tblock_shape0*
T0
:
Placeholder_5Placeholder*
shape:*
dtype0
8
Placeholder_6Placeholder*
shape:*
dtype0
{
SpaceToBatchND_2SpaceToBatchNDPlaceholderPlaceholder_5Placeholder_6*
	Tpaddings0*
Tblock_shape0*
T0
:
Placeholder_7Placeholder*
shape:*
dtype0
8
Placeholder_8Placeholder*
shape:*
dtype0
{
SpaceToBatchND_3SpaceToBatchNDPlaceholderPlaceholder_7Placeholder_8*
	Tpaddings0*
Tblock_shape0*
T0
:
Placeholder_9Placeholder*
shape:*
dtype0
9
Placeholder_10Placeholder*
shape:*
dtype0
|
SpaceToBatchND_4SpaceToBatchNDPlaceholderPlaceholder_9Placeholder_10*
	Tpaddings0*
Tblock_shape0*
T0
;
Placeholder_11Placeholder*
shape:*
dtype0
9
Placeholder_12Placeholder*
shape:*
dtype0
x
BatchToSpaceNDBatchToSpaceNDPlaceholderPlaceholder_11Placeholder_12*
T0*
Tblock_shape0*
Tcrops0
;
Placeholder_13Placeholder*
shape:*
dtype0
9
Placeholder_14Placeholder*
shape:*
dtype0
z
BatchToSpaceND_1BatchToSpaceNDPlaceholderPlaceholder_13Placeholder_14*
Tcrops0*
Tblock_shape0*
T0
[
SpaceToDepthSpaceToDepthPlaceholder*
data_formatNHWC*

block_size*
T0
[
DepthToSpaceDepthToSpacePlaceholder*
data_formatNHWC*

block_size*
T0"ª